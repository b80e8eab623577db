import { get, send } from '../lib/api';
import { ago, dateTime } from '../lib/format';
import { useResource } from '../lib/use';
import { Badge, Button, Failure, Skeleton, useAction } from '../ui/ui';

interface SignIn {
  id: string;
  caller: string;
  created: string;
  expires: string;
  from?: string;
  agent?: string;
  current: boolean;
}

/** SignIns lists the browsers that are signed in, and ends their sessions. */
export function SignIns() {
  const list = useResource<{ sessions: SignIn[] }>('signins', (s) => get('/api/page-sessions', s), 20_000);
  const [busy, act] = useAction();
  return (
    <section className="card">
      <h2>Signed in</h2>
      {list.error ? (
        <Failure error={list.error} retry={() => void list.reload()} />
      ) : !list.data ? (
        <Skeleton rows={2} />
      ) : (
        <div className="table-scroll" tabIndex={0} role="group" aria-label="Browsers that are signed in">
          <table>
            <thead>
              <tr>
                <th scope="col">Who</th>
                <th scope="col">Browser</th>
                <th scope="col">Since</th>
                <th scope="col">Until</th>
                <th scope="col">
                  <span className="sr-only">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {list.data.sessions.map((s) => (
                <tr key={s.id}>
                  <th scope="row">
                    {s.caller} {s.current && <Badge tone="accent">this one</Badge>}
                  </th>
                  <td title={s.agent}>{[browserName(s.agent), s.from].filter(Boolean).join(', ')}</td>
                  <td title={dateTime(s.created)}>{ago(s.created)}</td>
                  <td title={dateTime(s.expires)}>{ago(s.expires)}</td>
                  <td>
                    {!s.current && (
                      <Button small kind="quiet" busy={busy === s.id} onClick={() => void act(s.id, () => send('DELETE', `/api/page-sessions/${s.id}`), 'The session has ended').then(() => list.reload())}>
                        End
                      </Button>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

/** browserName finds the product that a person knows in what a browser calls itself. */
function browserName(agent = ''): string {
  return /(Firefox|Edg|OPR|Chrome|Safari)\//.exec(agent)?.[1]?.replace('Edg', 'Edge').replace('OPR', 'Opera') ?? agent.slice(0, 40);
}
