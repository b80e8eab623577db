// The gateway's event stream: views reload on a change instead of polling.
import { useEffect, useRef, useSyncExternalStore } from 'react';
import { readEvents, type LiveState } from './api';

interface LiveConnection {
  /** Whether the stream is open. Views poll while it is not. */
  open: boolean;
  /** Increases with every change. */
  version: number;
  /** The ids of the conversations whose reply waits for the user. */
  waitingChats: string[];
}

let state: LiveConnection = { open: false, version: 0, waitingChats: [] };
const listeners = new Set<() => void>();
function update(change: Partial<LiveConnection>) {
  state = { ...state, ...change };
  for (const f of listeners) f();
}

/**
 * followEvents reads the events until the returned function is called, and reconnects.
 * A page in the background keeps no connection, because browsers allow few per host.
 */
export function followEvents(read = readEvents, visible: () => boolean = () => !document.hidden, setTimer: (f: () => void, ms: number) => unknown = setTimeout): () => void {
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
        update({ open: true, version: state.version + 1, waitingChats });
      }
    } catch {
      // The request reports an unreachable gateway itself.
    }
    if (running === abort) running = null;
    if (state.open) update({ open: false });
    if (!stopped && visible()) setTimer(() => void run(), Math.min(10_000, 500 * 2 ** attempts++));
  };
  const onVisibilityChange = () => {
    if (visible()) void run();
    else {
      running?.abort();
      running = null;
    }
  };
  if (typeof document !== 'undefined') document.addEventListener('visibilitychange', onVisibilityChange);
  void run();
  return () => {
    stopped = true;
    running?.abort();
    update({ waitingChats: [] });
    if (typeof document !== 'undefined') document.removeEventListener('visibilitychange', onVisibilityChange);
  };
}

export function subscribeLive(f: () => void): () => void {
  listeners.add(f);
  return () => listeners.delete(f);
}
export const getLiveConnection = () => state;

/** useReloadOnChange calls reload after every change. */
export function useReloadOnChange(reload: (() => Promise<void>) | undefined): void {
  const { version } = useSyncExternalStore(subscribeLive, getLiveConnection);
  const first = useRef(version);
  useEffect(() => {
    if (version !== first.current) void reload?.();
    first.current = version;
  }, [version, reload]);
}

/** useWaitingChats counts the conversations whose reply waits for the user, other than the one that is open. */
export function useWaitingChats(open: string): number {
  return useSyncExternalStore(subscribeLive, getLiveConnection, getLiveConnection).waitingChats.filter((id) => id !== open).length;
}

/** usePollInterval returns the interval for polling: 0 while events arrive. */
export function usePollInterval(ms: number): number {
  return useSyncExternalStore(subscribeLive, getLiveConnection).open ? 0 : ms;
}
