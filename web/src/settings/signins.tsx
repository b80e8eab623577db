import { get, send, type GetResponse } from '../lib/api';
import { formatDateTime, timeAgo } from '../lib/format';
import { useQuery } from '../lib/use';
import { QueryContent, Table } from '../ui/grid';
import { Badge, Button, useAction } from '../ui/ui';

/** SignIns lists the browsers that are signed in, and ends their sessions. */
export function SignIns() {
  const list = useQuery<GetResponse<'/api/page-sessions'>>('signins', (s) => get('/api/page-sessions', s), 20_000);
  const [busy, act] = useAction();
  return (
    <section className="card">
      <h2>Signed-in browsers</h2>
      <QueryContent query={list} rows={2}>
        {({ sessions }) => (
          <Table label="Signed-in browsers" columns={['Caller', 'Browser', 'Signed in', 'Expires', '']}>
            {sessions.map((s) => (
              <tr key={s.id}>
                <th scope="row">
                  {s.caller} {s.current && <Badge tone="accent">this browser</Badge>}
                </th>
                <td title={s.agent}>{[browserName(s.agent), s.from].filter(Boolean).join(', ')}</td>
                <td title={formatDateTime(s.created)}>{timeAgo(s.created)}</td>
                <td title={formatDateTime(s.expires)}>{timeAgo(s.expires)}</td>
                <td>
                  {!s.current && (
                    <Button small kind="quiet" busy={busy === s.id} onClick={() => void act(s.id, () => send('DELETE', `/api/page-sessions/${s.id}`), 'Browser signed out').then(() => list.reload())}>
                      Sign out
                    </Button>
                  )}
                </td>
              </tr>
            ))}
          </Table>
        )}
      </QueryContent>
    </section>
  );
}

/** browserName returns the product name in a User-Agent header. */
function browserName(agent = ''): string {
  return /(Firefox|Edg|OPR|Chrome|Safari)\//.exec(agent)?.[1]?.replace('Edg', 'Edge').replace('OPR', 'Opera') ?? agent.slice(0, 40);
}
