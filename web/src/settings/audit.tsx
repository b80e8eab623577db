import { get, type GetResponse } from '../lib/api';
import { formatDateTime, oneLine, timeAgo } from '../lib/format';
import { useQuery } from '../lib/use';
import { useMe } from '../me';
import { NotAdmin } from './keys';
import { QueryContent, Table } from '../ui/grid';
import { EmptyState } from '../ui/ui';

/** AuditLog lists the entries of the audit log. */
export function AuditLog() {
  const me = useMe();
  const list = useQuery<GetResponse<'/api/audit'>>(me.admin ? 'audit' : null, (s) => get('/api/audit?limit=200', s), 20_000);
  if (!me.admin) return <NotAdmin subject="The audit log" />;
  return (
    <div className="stack">
      <p className="muted">Who made, changed, used or revoked what. The newest 200 are shown; junctor audit --limit 1000 has more.</p>
      <QueryContent query={list}>
        {({ entries }) =>
          entries.length === 0 ? (
            <EmptyState icon="shield" title="Nothing was changed yet" />
          ) : (
            <Table label="Audit log" className="audit" columns={['When', 'Who', 'Action', 'Target', 'Details']}>
              {entries.map((e) => (
                <tr key={e.id}>
                  <td title={formatDateTime(e.time)}>{timeAgo(e.time)}</td>
                  <td title={e.actor}>{e.name || e.actor}</td>
                  <td className="mono">{e.action}</td>
                  <td className="mono wrap">{e.target}</td>
                  <td className="mono small wrap">{e.detail === undefined ? '' : oneLine(e.detail)}</td>
                </tr>
              ))}
            </Table>
          )
        }
      </QueryContent>
    </div>
  );
}
