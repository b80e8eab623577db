import type { ReactNode } from 'react';
import type { QueryResult } from '../lib/use';
import { Button, Dialog, ErrorNote, Skeleton } from './ui';

/** Table is a table that scrolls sideways where it is too wide. A column with an empty name has the action buttons. */
export function Table({ label, columns, className = '', children }: { label: string; columns?: string[]; className?: string; /** The rows. */ children: ReactNode }) {
  return (
    <div className={`table-scroll ${className}`} tabIndex={0} role="group" aria-label={label}>
      <table>
        {columns && (
          <thead>
            <tr>
              {columns.map((c) => (
                <th key={c} scope="col">
                  {c || <span className="sr-only">Actions</span>}
                </th>
              ))}
            </tr>
          </thead>
        )}
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

/** QueryContent shows the data of a query, a placeholder while it loads, or its error. Earlier data stays visible. */
export function QueryContent<T>({ query, rows = 4, height, children }: { query: QueryResult<T>; rows?: number; height?: number; children: (data: T) => ReactNode }) {
  return (
    <>
      {query.error && <ErrorNote error={query.error} retry={() => void query.reload()} />}
      {query.data !== undefined ? children(query.data) : !query.error && <Skeleton rows={rows} height={height} />}
    </>
  );
}

/** ConfirmDialog asks before something is removed. */
export function ConfirmDialog({ title, action, busy, onClose, onConfirm, children }: { title: string; action: string; busy: boolean; onClose: () => void; onConfirm: () => void; children: ReactNode }) {
  return (
    <Dialog title={title} open onClose={onClose}>
      <p className="wrap">{children}</p>
      <div className="row end">
        <Button onClick={onClose}>Cancel</Button>
        <Button kind="danger" icon="trash" busy={busy} onClick={onConfirm}>
          {action}
        </Button>
      </div>
    </Dialog>
  );
}
