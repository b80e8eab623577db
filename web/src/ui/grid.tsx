import type { ReactNode } from 'react';
import type { Resource } from '../lib/use';
import { Button, Dialog, Failure, Skeleton } from './ui';

/** Table is a table that scrolls sideways where it is too wide. An empty column name is that of actions. */
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

/** Loaded shows what was read, or that it is being read, or why it could not be. Data that was read before stays. */
export function Loaded<T>({ from, rows = 4, height, children }: { from: Resource<T>; rows?: number; height?: number; children: (data: T) => ReactNode }) {
  return (
    <>
      {from.error && <Failure error={from.error} retry={() => void from.reload()} />}
      {from.data !== undefined ? children(from.data) : !from.error && <Skeleton rows={rows} height={height} />}
    </>
  );
}

/** Confirm asks before something is removed. */
export function Confirm({ title, action, busy, onClose, onConfirm, children }: { title: string; action: string; busy: boolean; onClose: () => void; onConfirm: () => void; children: ReactNode }) {
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
