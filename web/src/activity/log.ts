// The loaded part of the call log, and its filter. Statistics, charts
// and exports come from the gateway, over all records of the range.
import type { Call } from '../lib/api';

/** maxCalls is the number of records kept in the page; older ones are loaded on request. */
export const maxCalls = 5000;

/** mergeCalls adds records to a list sorted newest first, without duplicates. */
export function mergeCalls(calls: Call[], more: Call[]): Call[] {
  if (more.length === 0) return calls;
  const newest = calls[0]?.seq ?? -1;
  const ordered = [...more].sort((a, b) => b.seq - a.seq);
  let out: Call[];
  if (ordered.at(-1)!.seq > newest) out = dedupe([...ordered, ...calls]);
  else {
    const bySeq = new Map(calls.map((c) => [c.seq, c]));
    for (const c of ordered) bySeq.set(c.seq, c);
    out = [...bySeq.values()].sort((a, b) => b.seq - a.seq);
  }
  return out.length > maxCalls ? out.slice(0, maxCalls) : out;
}

function dedupe(sorted: Call[]): Call[] {
  return sorted.filter((c, i) => i === 0 || sorted[i - 1]!.seq !== c.seq);
}

/** Filter is the filter of the log, as in the URL. */
export interface Filter {
  server: string;
  tool: string;
  face: string;
  caller: string;
  status: string;
  q: string;
  /** A key of timeRanges; '' is the first. */
  range: string;
  /** A range chosen by zooming, as milliseconds since 1970; '' without one. */
  from: string;
  to: string;
}

const fields = ['server', 'tool', 'face', 'caller', 'status', 'q', 'range', 'from', 'to'] as const;

export function filterFromQuery(query: URLSearchParams): Filter {
  return Object.fromEntries(fields.map((f) => [f, query.get(f) ?? ''])) as unknown as Filter;
}

export const timeRanges: Record<string, { ms: number; label: string }> = {
  '1h': { ms: 3600_000, label: 'last hour' },
  '15m': { ms: 900_000, label: 'last 15 minutes' },
  '6h': { ms: 6 * 3600_000, label: 'last 6 hours' },
  '24h': { ms: 24 * 3600_000, label: 'last day' },
  '7d': { ms: 7 * 24 * 3600_000, label: 'last 7 days' },
  '30d': { ms: 30 * 24 * 3600_000, label: 'last 30 days' },
};

/** rangeOf returns the time that a filter covers; live if it ends now. */
export function rangeOf(f: Filter, now: number): { from: number; to: number; live: boolean } {
  const from = Number(f.from);
  const to = Number(f.to);
  if (from > 0 && to > from) return { from, to, live: false };
  const timeRange = timeRanges[f.range] ?? timeRanges['1h']!;
  return { from: now - timeRange.ms, to: now, live: true };
}

/** apiQuery returns the parameters of the gateway's API for a filter; a live range has no end. */
export function apiQuery(f: Filter, range: { from: number; to: number; live: boolean }): URLSearchParams {
  const p = new URLSearchParams();
  for (const [name, value] of [['server', f.server], ['tool', f.tool], ['api', f.face], ['caller', f.caller], ['status', f.status === 'bad' ? 'notok' : f.status], ['text', f.q.trim()]] as const) if (value) p.set(name, value);
  p.set('from', new Date(range.from).toISOString());
  if (!range.live) p.set('to', new Date(range.to).toISOString());
  return p;
}

/** isFiltered reports whether anything but the time limits the log. */
export const isFiltered = (f: Filter) => Boolean(f.server || f.tool || f.face || f.caller || f.status || f.q);
