import { get, send, type GetResponse } from '../lib/api';
import { formatDateTime, timeAgo } from '../lib/format';
import { useQuery } from '../lib/use';
import { QueryContent, Table } from '../ui/grid';
import { Badge, Button, useAction } from '../ui/ui';

/** Clients lists the programs that users authorized by OAuth, and revokes them. It is hidden while there are none. */
export function Clients() {
  const list = useQuery<GetResponse<'/api/clients'>>('clients', (s) => get('/api/clients', s), 20_000);
  const [busy, act] = useAction();
  if (!list.error && !list.data?.clients.length) return null;
  return (
    <section className="card">
      <h2>Signed-in programs</h2>
      <QueryContent query={list} rows={2}>
        {({ clients }) => (
          <Table label="Signed-in programs" columns={['Program', 'From', 'For', 'Last used', '']}>
            {clients.map((c) => (
              <tr key={c.id}>
                <th scope="row">{c.client}</th>
                <td>{c.clientHost || c.redirect}</td>
                <td>
                  {c.caller} {c.profile && <Badge tone="accent">{c.profile}</Badge>}
                </td>
                <td title={`Allowed ${formatDateTime(c.created)}`}>{timeAgo(c.lastUsed)}</td>
                <td>
                  <Button small kind="quiet" busy={busy === c.id} onClick={() => void act(c.id, () => send('DELETE', `/api/clients/${c.id}`), `${c.client} signed out`).then(() => list.reload())}>
                    Revoke
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
