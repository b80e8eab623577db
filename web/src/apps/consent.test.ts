import { describe, expect, it } from 'vitest';
import { Consents, type Question } from './consent';

const link = { title: 'Open this link?', text: 'example.com', yes: 'Open link' };
const call = { title: 'Allow this call?', text: 'delete_all', yes: 'Allow once' };

function setUp() {
  const shown: (Question | null)[] = [];
  return { consents: new Consents((q) => shown.push(q)), shown, last: () => shown.at(-1) };
}

describe('the questions of an app', () => {
  it('differ when one takes the place of another, so that a button that was ready is not for the next', async () => {
    const { consents, shown, last } = setUp();
    const cancel = new AbortController();
    const first = consents.ask(link, cancel.signal);
    const before = last()!.id;
    cancel.abort();
    void consents.ask(call, new AbortController().signal);
    expect(await first).toBe(false);
    expect(shown.map((q) => q?.title ?? null)).toEqual([link.title, null, call.title]);
    expect(last()!.id).not.toBe(before);
  });

  it('stay open when the app cancels a request that was answered', async () => {
    const { consents, last } = setUp();
    const cancel = new AbortController();
    const first = consents.ask(call, cancel.signal);
    last()!.answer(true);
    expect(await first).toBe(true);
    const second = consents.ask(link, new AbortController().signal);
    cancel.abort(); // the call runs still
    expect(last()!.title).toBe(link.title);
    expect(() => consents.ask(call, new AbortController().signal)).toThrow('another question');
    last()!.answer(true);
    expect(await second).toBe(true);
  });

  it('end after three refusals, and are not asked for requests that were cancelled before', () => {
    const { consents, shown, last } = setUp();
    const cancelled = new AbortController();
    cancelled.abort();
    expect(() => consents.ask(call, cancelled.signal)).toThrow('cancelled');
    expect(shown).toEqual([]);
    for (let i = 0; i < 3; i++) {
      void consents.ask(call, new AbortController().signal);
      last()!.answer(false);
    }
    expect(() => consents.ask(call, new AbortController().signal)).toThrow('too often');
  });
});
