import { useMemo, useState } from 'react';
import { formatCount } from '../lib/format';
import { JsonView } from './json';
import { cellText, tableFrom, type TableData } from './table';
import { Table } from './grid';
import { Button } from './ui';

/** DataView shows a list of objects as a table, and everything else as a tree. */
export function DataView({ value, label, open }: { value: unknown; label: string; open?: number }) {
  const rows = useMemo(() => tableFrom(value), [value]);
  const [asTree, setAsTree] = useState(false);
  if (!rows) return <JsonView value={value} open={open} label={label} />;
  return (
    <div>
      {asTree ? <JsonView value={value} open={open} label={label} /> : <DataTable rows={rows} label={label} />}
      <Button kind="quiet" small onClick={() => setAsTree(!asTree)}>
        {asTree ? 'Show as a table' : 'Show as a tree'}
      </Button>
    </div>
  );
}

function DataTable({ rows: { columns, rows, key }, label }: { rows: TableData; label: string }) {
  const [limit, setLimit] = useState(100);
  return (
    <>
      <Table label={key ? `${label}: ${key}` : label} className="data-table" columns={columns}>
        {rows.slice(0, limit).map((r, i) => (
          <tr key={i}>
            {columns.map((c) => (
              <td key={c} title={cellText(r[c]).slice(0, 2000)} className={typeof r[c] === 'number' ? 'num' : ''}>
                {cellText(r[c]).slice(0, 300)}
              </td>
            ))}
          </tr>
        ))}
      </Table>
      {rows.length > limit && (
        <Button kind="quiet" small onClick={() => setLimit(limit + 500)}>
          Show more ({formatCount(rows.length - limit)} left)
        </Button>
      )}
    </>
  );
}
