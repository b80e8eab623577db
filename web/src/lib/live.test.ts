import { expect, it } from 'vitest';
import { followEvents, getLiveConnection, subscribeLive } from './live';

it('reports each event, that the stream is lost, and reconnects', async () => {
  const streams: { push: () => void; end: () => void }[] = [];
  const opened: (() => void)[] = [];
  const next = () => new Promise<void>((r) => opened.push(r));
  const read = async function* (_: string, signal: AbortSignal) {
    let wake = () => {};
    let pending = 0;
    let ended = false;
    streams.push({ push: () => (pending++, wake()), end: () => ((ended = true), wake()) });
    opened.shift()?.();
    signal.addEventListener('abort', () => ((ended = true), wake()));
    while (!ended || pending > 0) {
      if (pending > 0) {
        pending--;
        yield { event: 'state', data: JSON.stringify({ waitingChats: ['c'] }) };
      } else await new Promise<void>((r) => (wake = r));
    }
  };
  const timers: (() => void)[] = [];
  const changed = () => new Promise<void>((r) => { const off = subscribeLive(() => (off(), r())); });
  let opening = next();
  const stop = followEvents(read, () => true, (f) => timers.push(f));
  await opening;
  let change = changed();
  const before = getLiveConnection().version;
  streams[0]!.push();
  await change;
  expect(getLiveConnection()).toEqual({ open: true, version: before + 1, waitingChats: ['c'] });
  change = changed();
  streams[0]!.end();
  await change;
  expect(getLiveConnection().open).toBe(false);
  await expect.poll(() => timers.length).toBe(1);
  opening = next();
  timers[0]!();
  await opening;
  change = changed();
  streams[1]!.push();
  await change;
  expect(getLiveConnection()).toEqual({ open: true, version: before + 2, waitingChats: ['c'] });
  stop();
  await expect.poll(() => getLiveConnection().open).toBe(false);
  expect(timers).toHaveLength(1);
});
