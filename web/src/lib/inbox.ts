// The calls that wait for approval. One tab of the browser follows them, also in
// the background, and shares them with the others.
import { useSyncExternalStore } from 'react';
import { events, type WaitingCall } from './api';

let waiting: WaitingCall[] = [];
const listeners = new Set<() => void>();

/** publish replaces the calls, and returns those that are new. */
export function publish(next: WaitingCall[]): WaitingCall[] {
  const known = new Set(waiting.map((c) => c.id));
  waiting = next;
  for (const f of listeners) f();
  return next.filter((c) => !known.has(c.id));
}

const subscribe = (f: () => void) => (listeners.add(f), () => void listeners.delete(f));
const current = () => waiting;
export const useInbox = () => useSyncExternalStore(subscribe, current, current);

/** notify shows desktop notifications of calls while the page is in the background. */
function notify(calls: WaitingCall[]) {
  if (typeof Notification === 'undefined' || Notification.permission !== 'granted' || !document.hidden) return;
  for (const c of calls.slice(0, 3)) {
    const n = new Notification('Approval needed', { body: `${c.callerName ?? c.caller} wants to run ${c.tool}`, tag: c.id });
    n.onclick = () => {
      window.focus();
      location.hash = '#/approvals';
      n.close();
    };
  }
}

/** followInbox follows the calls that wait until the returned function is called. */
export function followInbox(read = events): () => void {
  const stop = new AbortController();
  const channel = typeof BroadcastChannel === 'undefined' ? null : new BroadcastChannel('junctor-inbox');
  let leads = false;
  if (channel) {
    channel.onmessage = (e: MessageEvent<WaitingCall[] | 'hello'>) => {
      if (e.data !== 'hello') publish(e.data);
      else if (leads) channel.postMessage(waiting);
    };
    channel.postMessage('hello');
  }
  const lead = async () => {
    leads = true;
    for (let attempts = 0; !stop.signal.aborted; attempts++) {
      try {
        for await (const e of read('/api/approvals/events', stop.signal)) {
          attempts = 0;
          const { waiting: next } = JSON.parse(e.data) as { waiting: WaitingCall[] };
          channel?.postMessage(next);
          notify(publish(next));
        }
      } catch {
        // The request reports an unreachable gateway itself.
      }
      if (!stop.signal.aborted) await new Promise((r) => setTimeout(r, Math.min(10_000, 500 * 2 ** attempts)));
    }
  };
  // Browsers allow few connections per host: one tab is enough.
  if (navigator.locks) void navigator.locks.request('junctor-inbox', { signal: stop.signal }, lead).catch(() => {});
  else void lead();
  return () => {
    stop.abort();
    channel?.close();
    publish([]);
  };
}
