import { expect, it } from 'vitest';
import { current, follow, subscribe } from './live';

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
  const waiting: (() => void)[] = [];
  const changed = () => new Promise<void>((r) => { const off = subscribe(() => (off(), r())); });
  let opening = next();
  const stop = follow(read, () => true, (f) => waiting.push(f));
  await opening;
  let change = changed();
  const before = current().version;
  streams[0]!.push();
  await change;
  expect(current()).toEqual({ open: true, version: before + 1, waitingChats: ['c'] });
  change = changed();
  streams[0]!.end();
  await change;
  expect(current().open).toBe(false);
  await expect.poll(() => waiting.length).toBe(1);
  opening = next();
  waiting[0]!();
  await opening;
  change = changed();
  streams[1]!.push();
  await change;
  expect(current()).toEqual({ open: true, version: before + 2, waitingChats: ['c'] });
  stop();
  await expect.poll(() => current().open).toBe(false);
  expect(waiting).toHaveLength(1);
});
