import { describe, expect, it } from 'vitest';
import { followTrace, maxEntries, type TraceSocket, type TraceState } from './stream';

function setUp() {
  const sockets: (TraceSocket & { closed?: boolean })[] = [];
  const timers: { f: () => void; ms: number }[] = [];
  let state: TraceState | undefined;
  const stop = followTrace(
    (s) => (state = s),
    () => {
      const opened: TraceSocket & { closed?: boolean } = { onopen: null, onmessage: null, onclose: null, close: () => (opened.closed = true) };
      sockets.push(opened);
      return opened;
    },
    (f, ms) => timers.push({ f, ms }),
  );
  const socket = () => sockets.at(-1)! as unknown as { onopen: () => void; onmessage: (e: { data: string }) => void; onclose: () => void; closed?: boolean };
  return { stop, timers, sockets, socket, get state() { return state!; }, send: (method: string) => socket().onmessage({ data: JSON.stringify({ timestamp: 1, direction: 'OUT', method }) }) };
}

describe('the trace', () => {
  it('is sorted newest first and bounded', () => {
    const r = setUp();
    r.socket().onopen();
    expect(r.state).toEqual({ connection: 'live', entries: [] });
    r.send('a');
    r.socket().onmessage({ data: 'not JSON' });
    r.send('b');
    expect(r.state.entries!.map((e) => e.method)).toEqual(['b', 'a']);
    for (let i = 0; i < maxEntries; i++) r.send('c');
    expect(r.state.entries).toHaveLength(maxEntries);
    expect(new Set(r.state.entries!.map((e) => e.key)).size).toBe(maxEntries);
  });

  it('reconnects with backoff, replaces its messages, and stops on request', () => {
    const r = setUp();
    r.socket().onopen();
    r.send('a');
    for (let i = 0; i < 8; i++) {
      r.socket().onclose();
      expect(r.state.connection).toBe('broken');
      r.timers.at(-1)!.f();
    }
    expect(r.timers.map((w) => w.ms)).toEqual([500, 1000, 2000, 4000, 8000, 10_000, 10_000, 10_000]);
    expect(r.state.entries).toHaveLength(1); // shown until there is something newer
    r.socket().onopen();
    r.send('b');
    expect(r.state.entries!.map((e) => e.method)).toEqual(['b']);
    r.stop();
    expect(r.socket().closed).toBe(true);
    const opened = r.sockets.length;
    r.socket().onclose();
    expect(r.sockets.length).toBe(opened);
  });
});
