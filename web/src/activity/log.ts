// The loaded part of the call log, and the figures of its charts.
import type { Call } from '../lib/api';

/** maxHeld is the number of records kept in the page; older ones are loaded on request. */
export const maxHeld = 5000;

/** merge adds records to a list sorted newest first, without duplicates. */
export function merge(held: Call[], more: Call[]): Call[] {
  if (more.length === 0) return held;
  const newest = held[0]?.seq ?? -1;
  const ordered = [...more].sort((a, b) => b.seq - a.seq);
  let out: Call[];
  if (ordered.at(-1)!.seq > newest) out = dedupe([...ordered, ...held]);
  else {
    const bySeq = new Map(held.map((c) => [c.seq, c]));
    for (const c of ordered) bySeq.set(c.seq, c);
    out = [...bySeq.values()].sort((a, b) => b.seq - a.seq);
  }
  return out.length > maxHeld ? out.slice(0, maxHeld) : out;
}

function dedupe(sorted: Call[]): Call[] {
  return sorted.filter((c, i) => i === 0 || sorted[i - 1]!.seq !== c.seq);
}

export interface Filter {
  server: string;
  face: string;
  status: string;
  text: string;
}

export function keep(c: Call, f: Filter): boolean {
  if (f.server && c.server !== f.server) return false;
  if (f.face && c.face !== f.face) return false;
  if (f.status === 'bad' ? c.status === 'ok' : f.status && c.status !== f.status) return false;
  if (f.text) {
    const t = f.text.toLowerCase();
    return [c.tool, c.server, c.method, c.error, c.id, c.requestId, c.caller, c.code].some((s) => s?.toLowerCase().includes(t));
  }
  return true;
}

export function percentile(sorted: number[], p: number): number {
  if (sorted.length === 0) return NaN;
  return sorted[Math.min(sorted.length - 1, Math.ceil((p / 100) * sorted.length) - 1)] ?? NaN;
}

export interface Bucket {
  from: number;
  ok: number;
  bad: number;
  p50: number;
  p95: number;
}

/** buckets divides the last `span` milliseconds into `n` intervals. */
export function buckets(calls: Call[], now: number, span: number, n: number): Bucket[] {
  const width = span / n;
  const start = now - span;
  const times: number[][] = Array.from({ length: n }, () => []);
  const out: Bucket[] = Array.from({ length: n }, (_, i) => ({ from: start + i * width, ok: 0, bad: 0, p50: NaN, p95: NaN }));
  for (const c of calls) {
    const i = Math.floor((Date.parse(c.time) - start) / width);
    const b = out[i];
    if (!b) continue;
    if (c.status === 'ok') b.ok++;
    else b.bad++;
    times[i]!.push(c.durationMs);
  }
  out.forEach((b, i) => {
    const t = times[i]!.sort((x, y) => x - y);
    b.p50 = percentile(t, 50);
    b.p95 = percentile(t, 95);
  });
  return out;
}

export interface ServerFigures {
  server: string;
  calls: number;
  bad: number;
  p50: number;
  p95: number;
}

export function perServer(calls: Call[]): ServerFigures[] {
  const groups = new Map<string, Call[]>();
  for (const c of calls) {
    const name = c.server || '(none)';
    const g = groups.get(name);
    if (g) g.push(c);
    else groups.set(name, [c]);
  }
  return [...groups]
    .map(([server, list]) => {
      const t = list.map((c) => c.durationMs).sort((a, b) => a - b);
      return { server, calls: list.length, bad: list.filter((c) => c.status !== 'ok').length, p50: percentile(t, 50), p95: percentile(t, 95) };
    })
    .sort((a, b) => b.calls - a.calls);
}
