import { describe, expect, it } from 'vitest';
import { follow, maxTrace, type Line, type TraceState } from './stream';

function rig() {
  const lines: (Line & { closed?: boolean })[] = [];
  const waits: { f: () => void; ms: number }[] = [];
  let state: TraceState | undefined;
  const stop = follow(
    (s) => (state = s),
    () => {
      const line: Line & { closed?: boolean } = { onopen: null, onmessage: null, onclose: null, close: () => (line.closed = true) };
      lines.push(line);
      return line;
    },
    (f, ms) => waits.push({ f, ms }),
  );
  const line = () => lines.at(-1)! as unknown as { onopen: () => void; onmessage: (e: { data: string }) => void; onclose: () => void; closed?: boolean };
  return { stop, waits, lines, line, get state() { return state!; }, send: (method: string) => line().onmessage({ data: JSON.stringify({ timestamp: 1, direction: 'OUT', method }) }) };
}

describe('the trace', () => {
  it('is sorted newest first and bounded', () => {
    const r = rig();
    r.line().onopen();
    expect(r.state).toEqual({ link: 'live', entries: [] });
    r.send('a');
    r.line().onmessage({ data: 'not JSON' });
    r.send('b');
    expect(r.state.entries!.map((e) => e.method)).toEqual(['b', 'a']);
    for (let i = 0; i < maxTrace; i++) r.send('c');
    expect(r.state.entries).toHaveLength(maxTrace);
    expect(new Set(r.state.entries!.map((e) => e.key)).size).toBe(maxTrace);
  });

  it('reconnects with backoff, replaces its messages, and stops on request', () => {
    const r = rig();
    r.line().onopen();
    r.send('a');
    for (let i = 0; i < 8; i++) {
      r.line().onclose();
      expect(r.state.link).toBe('broken');
      r.waits.at(-1)!.f();
    }
    expect(r.waits.map((w) => w.ms)).toEqual([500, 1000, 2000, 4000, 8000, 10_000, 10_000, 10_000]);
    expect(r.state.entries).toHaveLength(1); // shown until there is something newer
    r.line().onopen();
    r.send('b');
    expect(r.state.entries!.map((e) => e.method)).toEqual(['b']);
    r.stop();
    expect(r.line().closed).toBe(true);
    const dialled = r.lines.length;
    r.line().onclose();
    expect(r.lines.length).toBe(dialled);
  });
});
