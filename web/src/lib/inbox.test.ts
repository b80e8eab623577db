import { afterEach, expect, it, vi } from 'vitest';
import type { WaitingCall } from './api';
import { followInbox, setPendingCalls } from './inbox';

const call = (id: string): WaitingCall => ({ id, status: 'input_required', tool: 'fs:write', caller: 'key:a', created: '', updated: '', expires: '', version: 1, inputs: [] });

afterEach(() => {
  vi.unstubAllGlobals();
  setPendingCalls([]);
});

it('returns the calls that are new', () => {
  expect(setPendingCalls([call('a')]).map((c) => c.id)).toEqual(['a']);
  expect(setPendingCalls([call('a'), call('b')]).map((c) => c.id)).toEqual(['b']);
  expect(setPendingCalls([call('b')])).toEqual([]);
});

it('shows a notification of a new call while the page is hidden', async () => {
  const shown: string[] = [];
  let resolve = () => {};
  const notified = new Promise<void>((r) => (resolve = r));
  class Desktop {
    static permission = 'granted';
    onclick = () => {};
    constructor(_: string, o: { body: string }) {
      shown.push(o.body);
      resolve();
    }
  }
  vi.stubGlobal('Notification', Desktop);
  vi.stubGlobal('document', { hidden: true });
  vi.stubGlobal('navigator', {});
  vi.stubGlobal('BroadcastChannel', undefined);
  const read = async function* (_: string, signal: AbortSignal) {
    yield { event: 'waiting', data: JSON.stringify({ waiting: [{ ...call('a'), callerName: 'ann' }] }) };
    await new Promise((r) => signal.addEventListener('abort', r));
  };
  const stop = followInbox(read);
  await notified;
  expect(shown).toEqual(['ann wants to run fs:write']);
  stop();
});
