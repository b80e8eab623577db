import { describe, expect, it } from 'vitest';
import type { Call } from '../lib/api';
import { buckets, keep, maxHeld, merge, percentile, perServer } from './log';

const call = (seq: number, more: Partial<Call> = {}): Call => ({ seq, id: 'c' + seq, time: new Date(seq * 1000).toISOString(), durationMs: seq, status: 'ok', ...more });
const seqs = (l: Call[]) => l.map((c) => c.seq);

describe('the log', () => {
  it('is sorted newest first without duplicates, in any order of arrival', () => {
    let l = merge([], [call(1), call(2), call(3)]);
    expect(seqs(l)).toEqual([3, 2, 1]);
    l = merge(l, [call(5), call(4), call(4)]);
    expect(seqs(l)).toEqual([5, 4, 3, 2, 1]);
    l = merge(l, [call(3), call(0), call(6)]);
    expect(seqs(l)).toEqual([6, 5, 4, 3, 2, 1, 0]);
    expect(merge(l, [])).toBe(l);
  });
  it('is bounded', () => {
    const l = merge(merge([], Array.from({ length: maxHeld }, (_, i) => call(i))), [call(maxHeld)]);
    expect(l).toHaveLength(maxHeld);
    expect(l[0]!.seq).toBe(maxHeld);
  });
  it('can be filtered by each field', () => {
    const c = call(1, { server: 'fs', tool: 'Read', face: 'chat', status: 'failed', error: 'too slow', requestId: 'mine-1' });
    const none = { server: '', face: '', status: '', text: '' };
    for (const [f, want] of [
      [{}, true],
      [{ server: 'fs' }, true],
      [{ server: 'git' }, false],
      [{ face: 'cli' }, false],
      [{ status: 'bad' }, true],
      [{ status: 'ok' }, false],
      [{ text: 'READ' }, true],
      [{ text: 'slow' }, true],
      [{ text: 'mine-' }, true],
      [{ text: 'nope' }, false],
    ] as const)
      expect(keep(c, { ...none, ...f }), JSON.stringify(f)).toBe(want);
    expect(keep(call(1), { ...none, status: 'bad' })).toBe(false);
  });
});

describe('figures', () => {
  it('computes percentiles', () => {
    expect(percentile([], 50)).toBeNaN();
    expect(percentile([7], 95)).toBe(7);
    expect(percentile([1, 2, 3, 4], 50)).toBe(2);
    expect(percentile(Array.from({ length: 100 }, (_, i) => i + 1), 95)).toBe(95);
  });
  it('counts per interval', () => {
    const now = 100_000;
    const b = buckets([call(99), call(95, { status: 'error' }), call(50), call(1)], now, 50_000, 5);
    expect(b.map((x) => [x.ok, x.bad])).toEqual([[1, 0], [0, 0], [0, 0], [0, 0], [1, 1]]);
    expect(b[4]!.p50).toBe(95);
  });
  it('groups by server', () => {
    const f = perServer([call(1, { server: 'a' }), call(3, { server: 'a', status: 'failed' }), call(2, { server: 'b' }), call(4)]);
    expect(f[0]).toEqual({ server: 'a', calls: 2, bad: 1, p50: 1, p95: 3 });
    expect(f.map((x) => x.server)).toContain('(none)');
  });
});
