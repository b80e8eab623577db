import { useMemo, useState } from 'react';
import { count } from '../lib/format';
import { JsonView } from './json';
import { cellText, rowsOf, type Rows } from './table';
import { Table } from './grid';
import { Button } from './ui';

/** DataView shows a list of objects as a table, and everything else as a tree. */
export function DataView({ value, label, open }: { value: unknown; label: string; open?: number }) {
  const rows = useMemo(() => rowsOf(value), [value]);
  const [tree, set] = useState(false);
  if (!rows) return <JsonView value={value} open={open} label={label} />;
  return (
    <div>
      {tree ? <JsonView value={value} open={open} label={label} /> : <DataTable rows={rows} label={label} />}
      <Button kind="quiet" small onClick={() => set(!tree)}>
        {tree ? 'Show as a table' : 'Show as a tree'}
      </Button>
    </div>
  );
}

function DataTable({ rows: { columns, rows, key }, label }: { rows: Rows; label: string }) {
  const [shown, more] = useState(100);
  return (
    <>
      <Table label={key ? `${label}: ${key}` : label} className="data-table" columns={columns}>
        {rows.slice(0, shown).map((r, i) => (
          <tr key={i}>
            {columns.map((c) => (
              <td key={c} title={cellText(r[c]).slice(0, 2000)} className={typeof r[c] === 'number' ? 'num' : ''}>
                {cellText(r[c]).slice(0, 300)}
              </td>
            ))}
          </tr>
        ))}
      </Table>
      {rows.length > shown && (
        <Button kind="quiet" small onClick={() => more(shown + 500)}>
          Show more ({count(rows.length - shown)} left)
        </Button>
      )}
    </>
  );
}
