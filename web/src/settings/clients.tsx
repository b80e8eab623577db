import { get, send, type Got } from '../lib/api';
import { ago, dateTime } from '../lib/format';
import { useResource } from '../lib/use';
import { Badge, Button, Failure, useAction } from '../ui/ui';

/** Clients lists the programs that people let sign in by OAuth, and revokes them. It shows nothing while there are none. */
export function Clients() {
  const list = useResource<Got<'/api/clients'>>('clients', (s) => get('/api/clients', s), 20_000);
  const [busy, act] = useAction();
  if (!list.error && !list.data?.clients.length) return null;
  return (
    <section className="card">
      <h2>Signed-in programs</h2>
      {list.error ? (
        <Failure error={list.error} retry={() => void list.reload()} />
      ) : (
        <div className="table-scroll" tabIndex={0} role="group" aria-label="Signed-in programs">
          <table>
            <thead>
              <tr>
                <th scope="col">Program</th>
                <th scope="col">From</th>
                <th scope="col">For</th>
                <th scope="col">Last used</th>
                <th scope="col">
                  <span className="sr-only">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {list.data?.clients.map((c) => (
                <tr key={c.id}>
                  <th scope="row">{c.client}</th>
                  <td>{c.clientHost || c.redirect}</td>
                  <td>
                    {c.caller} {c.profile && <Badge tone="accent">{c.profile}</Badge>}
                  </td>
                  <td title={`Allowed ${dateTime(c.created)}`}>{ago(c.lastUsed)}</td>
                  <td>
                    <Button small kind="quiet" busy={busy === c.id} onClick={() => void act(c.id, () => send('DELETE', `/api/clients/${c.id}`), `${c.client} signed out`).then(() => list.reload())}>
                      Revoke
                    </Button>
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
