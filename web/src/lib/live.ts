// The gateway's events: what changes is read again at once, without polling.
import { useEffect, useRef, useSyncExternalStore } from 'react';
import { events, type LiveState } from './api';

interface State {
  /** Whether the stream is open. Views poll while it is not. */
  open: boolean;
  /** Increases with every change. */
  version: number;
  /** The conversations whose reply waits for the user. */
  waitingChats: string[];
}

let state: State = { open: false, version: 0, waitingChats: [] };
const listeners = new Set<() => void>();
function publish(change: Partial<State>) {
  state = { ...state, ...change };
  for (const f of listeners) f();
}

/**
 * follow reads the events until the returned function is called, and reconnects.
 * A page in the background keeps no connection, because browsers allow few per host.
 */
export function follow(read = events, visible: () => boolean = () => !document.hidden, later: (f: () => void, ms: number) => unknown = setTimeout): () => void {
  let stopped = false;
  let running: AbortController | null = null;
  let attempts = 0;
  const run = async () => {
    if (stopped || running || !visible()) return;
    const abort = (running = new AbortController());
    try {
      for await (const e of read('/api/events', abort.signal)) {
        attempts = 0;
        const { waitingChats } = JSON.parse(e.data) as LiveState;
        publish({ open: true, version: state.version + 1, waitingChats });
      }
    } catch {
      // The request reports an unreachable gateway itself.
    }
    if (running === abort) running = null;
    if (state.open) publish({ open: false });
    if (!stopped && visible()) later(() => void run(), Math.min(10_000, 500 * 2 ** attempts++));
  };
  const seen = () => {
    if (visible()) void run();
    else {
      running?.abort();
      running = null;
    }
  };
  if (typeof document !== 'undefined') document.addEventListener('visibilitychange', seen);
  void run();
  return () => {
    stopped = true;
    running?.abort();
    publish({ waitingChats: [] });
    if (typeof document !== 'undefined') document.removeEventListener('visibilitychange', seen);
  };
}

export function subscribe(f: () => void): () => void {
  listeners.add(f);
  return () => listeners.delete(f);
}
export const current = () => state;

/** useLive calls reload after every change. */
export function useLive(reload: (() => Promise<void>) | undefined): void {
  const { version } = useSyncExternalStore(subscribe, current);
  const first = useRef(version);
  useEffect(() => {
    if (version !== first.current) void reload?.();
    first.current = version;
  }, [version, reload]);
}

/** useWaitingChats counts the conversations whose reply waits for the user, other than the one that is open. */
export function useWaitingChats(open: string): number {
  return useSyncExternalStore(subscribe, current, current).waitingChats.filter((id) => id !== open).length;
}

/** useLiveEvery returns the interval for polling: 0 while events arrive. */
export function useLiveEvery(ms: number): number {
  return useSyncExternalStore(subscribe, current).open ? 0 : ms;
}
