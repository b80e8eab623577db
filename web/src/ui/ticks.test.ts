import { describe, expect, it } from 'vitest';
import { logTicks, niceTicks, timeLabel, timeTicks } from './ticks';

describe('ticks', () => {
  it('are round and cover the values', () => {
    expect(niceTicks(0)).toEqual([0, 1]);
    expect(niceTicks(3)).toEqual([0, 1, 2, 3]);
    expect(niceTicks(7)).toEqual([0, 5, 10]);
    expect(niceTicks(1000)).toEqual([0, 500, 1000]);
    for (const max of [1, 9, 11, 123, 9999, 1e6, 0.4]) {
      const t = niceTicks(max);
      expect(t.at(-1)).toBeGreaterThanOrEqual(max);
      expect(t.length).toBeLessThanOrEqual(5);
    }
  });
  it('are powers of ten on a logarithmic axis', () => {
    expect(logTicks(3, 250)).toEqual([1, 10, 100, 1000]);
    expect(logTicks(5, 5)).toEqual([1, 10]);
    expect(logTicks(0, 1e6).length).toBeLessThanOrEqual(6);
    expect(logTicks(0.001, 1e6).at(-1)).toBeGreaterThanOrEqual(1e6);
  });
  it('are at round times, at most as many as fit', () => {
    const from = new Date(2026, 0, 5, 10, 7).getTime();
    const t = timeTicks(from, from + 3600_000, 6);
    expect(t.map((x) => new Date(x).getMinutes())).toEqual([10, 20, 30, 40, 50, 0]);
    expect(timeTicks(from, from + 7 * 86_400_000, 4).length).toBeLessThanOrEqual(5);
    expect(timeLabel(from, 3600_000)).toMatch(/^10\D+07\D*$/);
    expect(timeLabel(from, 3600_000, true)).toMatch(/^10\D+07\D+00\D*$/);
  });
});
