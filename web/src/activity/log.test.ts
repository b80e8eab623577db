import { describe, expect, it } from 'vitest';
import type { Call } from '../lib/api';
import { apiQuery, filterFromQuery, isFiltered, maxCalls, mergeCalls, rangeOf } from './log';

const call = (seq: number, more: Partial<Call> = {}): Call => ({ seq, id: 'c' + seq, time: new Date(seq * 1000).toISOString(), durationMs: seq, status: 'ok', ...more });
const seqs = (l: Call[]) => l.map((c) => c.seq);

describe('the log', () => {
  it('is sorted newest first without duplicates, in any order of arrival', () => {
    let l = mergeCalls([], [call(1), call(2), call(3)]);
    expect(seqs(l)).toEqual([3, 2, 1]);
    l = mergeCalls(l, [call(5), call(4), call(4)]);
    expect(seqs(l)).toEqual([5, 4, 3, 2, 1]);
    l = mergeCalls(l, [call(3), call(0), call(6)]);
    expect(seqs(l)).toEqual([6, 5, 4, 3, 2, 1, 0]);
    expect(mergeCalls(l, [])).toBe(l);
  });
  it('is bounded', () => {
    const l = mergeCalls(mergeCalls([], Array.from({ length: maxCalls }, (_, i) => call(i))), [call(maxCalls)]);
    expect(l).toHaveLength(maxCalls);
    expect(l[0]!.seq).toBe(maxCalls);
  });
});

describe('the query', () => {
  const now = Date.parse('2026-01-05T12:00:00Z');
  const query = (address: string) => {
    const f = filterFromQuery(new URLSearchParams(address));
    return apiQuery(f, rangeOf(f, now)).toString();
  };
  it('has the filters of the URL', () => {
    expect(query('')).toBe('from=2026-01-05T11%3A00%3A00.000Z');
    expect(query('range=24h&server=fs&tool=read&face=chat&caller=key:a&status=bad&q= rain ')).toBe('server=fs&tool=read&api=chat&caller=key%3Aa&status=notok&text=rain&from=2026-01-04T12%3A00%3A00.000Z');
    expect(query(`from=${now - 2000}&to=${now - 1000}`)).toBe('from=2026-01-05T11%3A59%3A58.000Z&to=2026-01-05T11%3A59%3A59.000Z');
  });
  it('ignores an invalid range', () => {
    for (const bad of ['from=x&to=y', 'from=2&to=1', 'range=never']) expect(query(bad)).toBe(query(''));
  });
  it('reports whether there is a filter besides the time range', () => {
    expect(isFiltered(filterFromQuery(new URLSearchParams('range=7d&from=1&to=2')))).toBe(false);
    expect(isFiltered(filterFromQuery(new URLSearchParams('q=x')))).toBe(true);
  });
});
