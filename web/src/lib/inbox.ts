// The calls that wait for approval. One tab of the browser, the leader, follows them, also in
// the background, and publishes them to the other tabs.
import { useSyncExternalStore } from 'react';
import { readEvents, type WaitingCall } from './api';

let pendingCalls: WaitingCall[] = [];
const listeners = new Set<() => void>();

/** setPendingCalls replaces the calls, and returns those that are new. */
export function setPendingCalls(next: WaitingCall[]): WaitingCall[] {
  const known = new Set(pendingCalls.map((c) => c.id));
  pendingCalls = next;
  for (const f of listeners) f();
  return next.filter((c) => !known.has(c.id));
}

const subscribe = (f: () => void) => (listeners.add(f), () => void listeners.delete(f));
const getPendingCalls = () => pendingCalls;
export const useInbox = () => useSyncExternalStore(subscribe, getPendingCalls, getPendingCalls);

/** showNotifications shows desktop notifications of calls while the page is in the background. */
function showNotifications(calls: WaitingCall[]) {
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

/** followInbox follows the calls that wait for approval, until the returned function is called. */
export function followInbox(read = readEvents): () => void {
  const stop = new AbortController();
  const channel = typeof BroadcastChannel === 'undefined' ? null : new BroadcastChannel('junctor-inbox');
  let isLeader = false;
  if (channel) {
    channel.onmessage = (e: MessageEvent<WaitingCall[] | 'hello'>) => {
      if (e.data !== 'hello') setPendingCalls(e.data);
      else if (isLeader) channel.postMessage(pendingCalls);
    };
    channel.postMessage('hello');
  }
  const runAsLeader = async () => {
    isLeader = true;
    for (let attempts = 0; !stop.signal.aborted; attempts++) {
      try {
        for await (const e of read('/api/approvals/events', stop.signal)) {
          attempts = 0;
          const { waiting: next } = JSON.parse(e.data) as { waiting: WaitingCall[] };
          channel?.postMessage(next);
          showNotifications(setPendingCalls(next));
        }
      } catch {
        // The request reports an unreachable gateway itself.
      }
      if (!stop.signal.aborted) await new Promise((r) => setTimeout(r, Math.min(10_000, 500 * 2 ** attempts)));
    }
  };
  // Browsers allow few connections per host: one tab is enough.
  if (navigator.locks) void navigator.locks.request('junctor-inbox', { signal: stop.signal }, runAsLeader).catch(() => {});
  else void runAsLeader();
  return () => {
    stop.abort();
    channel?.close();
    setPendingCalls([]);
  };
}
