import { describe, expect, it } from 'vitest';
import { ConsentPrompts, type ConsentRequest } from './consent';

const link = { title: 'Open this link?', text: 'example.com', confirmLabel: 'Open link' };
const call = { title: 'Allow this call?', text: 'delete_all', confirmLabel: 'Allow once' };

function setUp() {
  const shown: (ConsentRequest | null)[] = [];
  return { prompts: new ConsentPrompts((q) => shown.push(q)), shown, last: () => shown.at(-1) };
}

describe('the consent requests of an app', () => {
  it('have different ids, so that an enabled button is not reused for the next', async () => {
    const { prompts, shown, last } = setUp();
    const cancel = new AbortController();
    const first = prompts.ask(link, cancel.signal);
    const before = last()!.id;
    cancel.abort();
    void prompts.ask(call, new AbortController().signal);
    expect(await first).toBe(false);
    expect(shown.map((q) => q?.title ?? null)).toEqual([link.title, null, call.title]);
    expect(last()!.id).not.toBe(before);
  });

  it('stay open when the app cancels a request that was answered', async () => {
    const { prompts, last } = setUp();
    const cancel = new AbortController();
    const first = prompts.ask(call, cancel.signal);
    last()!.answer(true);
    expect(await first).toBe(true);
    const second = prompts.ask(link, new AbortController().signal);
    cancel.abort(); // the call is still running
    expect(last()!.title).toBe(link.title);
    expect(() => prompts.ask(call, new AbortController().signal)).toThrow('another question');
    last()!.answer(true);
    expect(await second).toBe(true);
  });

  it('are rejected after three refusals, and are not shown for requests that are already cancelled', () => {
    const { prompts, shown, last } = setUp();
    const cancelled = new AbortController();
    cancelled.abort();
    expect(() => prompts.ask(call, cancelled.signal)).toThrow('cancelled');
    expect(shown).toEqual([]);
    for (let i = 0; i < 3; i++) {
      void prompts.ask(call, new AbortController().signal);
      last()!.answer(false);
    }
    expect(() => prompts.ask(call, new AbortController().signal)).toThrow('too often');
  });
});
