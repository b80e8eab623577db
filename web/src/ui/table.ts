// Which values are shown as a table: lists of objects.

export interface TableData {
  /** The key of the list in the value; '' for the value itself. */
  key: string;
  columns: string[];
  rows: Record<string, unknown>[];
}

const maxColumns = 12;

/** tableFrom returns a table of value, a list of objects, or of its only list; null when a tree is the better view. */
export function tableFrom(value: unknown): TableData | null {
  if (Array.isArray(value)) return tableFromList('', value);
  if (typeof value !== 'object' || value === null) return null;
  const lists = Object.entries(value).filter(([, v]) => Array.isArray(v) && v.length > 0);
  return lists.length === 1 ? tableFromList(lists[0]![0], lists[0]![1] as unknown[]) : null;
}

function tableFromList(key: string, list: unknown[]): TableData | null {
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
