import { get, send, type GetResponse } from '../lib/api';
import { useQuery } from '../lib/use';
import { QueryContent, Table } from '../ui/grid';
import { Badge, Button, useAction } from '../ui/ui';

/** Approvals lists the tools that the caller allowed with "always", and revokes them. */
export function Approvals() {
  const list = useQuery<GetResponse<'/api/approvals'>>('approvals', (s) => get('/api/approvals', s));
  const [busy, act] = useAction();
  const revoke = (tool: string) => send('DELETE', `/api/approvals/${encodeURIComponent(tool)}`);
  return (
    <section className="card">
      <h2>Always allowed tools</h2>
      <QueryContent query={list} rows={2}>
        {({ approvals }) =>
          approvals.length === 0 ? (
            <p className="muted">None. The chat asks before it runs a tool that requires approval. Tools that you allow with “Always” are listed here.</p>
          ) : (
            <Table label="Always allowed tools" columns={['Tool', '']}>
              {approvals.map((a) => (
                <tr key={a.tool + a.fingerprint} className={a.current ? '' : 'off'}>
                  <th scope="row" className="mono" title={a.fingerprint}>
                    {a.tool} {!a.current && <Badge>changed, needs approval again</Badge>}
                  </th>
                  <td>
                    <Button small kind="quiet" busy={busy === a.tool} aria-label={`Revoke ${a.tool}`} onClick={() => void act(a.tool, () => revoke(a.tool), `${a.tool} needs approval again`).then(() => list.reload())}>
                      Revoke
                    </Button>
                  </td>
                </tr>
              ))}
            </Table>
          )
        }
      </QueryContent>
    </section>
  );
}
