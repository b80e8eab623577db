// Which values are shown as a table: lists of objects.

export interface Rows {
  /** Where the list is in the value; '' for the value itself. */
  key: string;
  columns: string[];
  rows: Record<string, unknown>[];
}

const maxColumns = 12;

/** rowsOf returns the list of objects that value is, or that is its only list; null when it is better shown as a tree. */
export function rowsOf(value: unknown): Rows | null {
  if (Array.isArray(value)) return table('', value);
  if (typeof value !== 'object' || value === null) return null;
  const lists = Object.entries(value).filter(([, v]) => Array.isArray(v) && v.length > 0);
  return lists.length === 1 ? table(lists[0]![0], lists[0]![1] as unknown[]) : null;
}

function table(key: string, list: unknown[]): Rows | null {
  if (list.length === 0 || !list.every((r) => typeof r === 'object' && r !== null && !Array.isArray(r))) return null;
  const rows = list as Record<string, unknown>[];
  const columns: string[] = [];
  for (const r of rows.slice(0, 1000)) {
    for (const k of Object.keys(r)) if (!columns.includes(k)) columns.push(k);
    if (columns.length > maxColumns) return null;
  }
  return columns.length > 0 ? { key, columns, rows } : null;
}

/** cellText returns a value as one line. */
export function cellText(v: unknown): string {
  if (v === undefined || v === null) return '';
  return typeof v === 'object' ? JSON.stringify(v) : String(v);
}
