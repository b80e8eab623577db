import { get, send, type GetResponse } from '../lib/api';
import { formatDateTime } from '../lib/format';
import { useQuery } from '../lib/use';
import { QueryContent, Table } from '../ui/grid';
import { Button, useAction } from '../ui/ui';

/** Logins lists, for administrators, the callers with their own login to a server, and can sign them out. */
export function Logins({ server }: { server: string }) {
  const path = `/api/mcp/${encodeURIComponent(server)}`;
  const list = useQuery<GetResponse<'/api/mcp/{name}/logins'>>(`logins ${server}`, (s) => get(`${path}/logins`, s), 20_000);
  const [busy, act] = useAction();
  if (!list.error && !list.data?.logins.length) return null;
  return (
    <section>
      <h3>Logins of callers</h3>
      <QueryContent query={list} rows={2}>
        {({ logins }) => (
          <Table label="Logins of callers" columns={['Caller', 'Since', '']}>
            {logins.map((l) => (
              <tr key={l.caller}>
                <th scope="row" title={l.caller}>
                  {l.name || l.caller}
                </th>
                <td>{l.since && formatDateTime(l.since)}</td>
                <td>
                  <Button
                    small
                    kind="quiet"
                    busy={busy === l.caller}
                    onClick={() => void act(l.caller, () => send('DELETE', `${path}/authorize?caller=${encodeURIComponent(l.caller)}`), `${l.name || l.caller} signed out of ${server}`).then(() => list.reload())}
                  >
                    End
                  </Button>
                </td>
              </tr>
            ))}
          </Table>
        )}
      </QueryContent>
    </section>
  );
}
