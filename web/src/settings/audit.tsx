import { get, type Got } from '../lib/api';
import { ago, dateTime, oneLine } from '../lib/format';
import { useResource } from '../lib/use';
import { Failure, Skeleton } from '../ui/ui';

/** Audit lists who made, changed, used or revoked what. */
export function Audit() {
  const list = useResource<Got<'/api/audit'>>('audit', (s) => get('/api/audit?limit=200', s), 20_000);
  return (
    <section className="card">
      <h2>Audit log</h2>
      {list.error ? (
        <Failure error={list.error} retry={() => void list.reload()} />
      ) : !list.data ? (
        <Skeleton rows={4} />
      ) : list.data.entries.length === 0 ? (
        <p className="muted">Nothing was changed yet.</p>
      ) : (
        <div className="table-scroll" tabIndex={0} role="group" aria-label="Audit log">
          <table>
            <thead>
              <tr>
                <th scope="col">When</th>
                <th scope="col">Who</th>
                <th scope="col">Action</th>
                <th scope="col">Target</th>
                <th scope="col">Details</th>
              </tr>
            </thead>
            <tbody>
              {list.data.entries.map((e) => (
                <tr key={e.id}>
                  <td title={dateTime(e.time)}>{ago(e.time)}</td>
                  <td title={e.actor}>{e.name || e.actor}</td>
                  <td className="mono">{e.action}</td>
                  <td className="mono wrap">{e.target}</td>
                  <td className="mono small wrap">{e.detail === undefined ? '' : oneLine(e.detail)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
