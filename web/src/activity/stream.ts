// The MCP trace as it comes from the gateway.

import { webSocket } from '../lib/api';

/** One message between the gateway and a server. */
export interface TraceEntry {
  /** Grows with every message; the page's own. */
  key: number;
  timestamp: number;
  direction: string;
  backendId?: string;
  id?: number;
  method: string;
  paramsOrResult?: unknown;
  error?: unknown;
}

export interface TraceState {
  link: 'connecting' | 'live' | 'broken';
  /** Newest first; null before the first connection. */
  entries: TraceEntry[] | null;
}

/** How many messages the page holds. */
export const maxTrace = 1000;

/** What is needed of a WebSocket; a test hands in its own. */
export type Line = Pick<ReturnType<typeof webSocket>, 'onopen' | 'onmessage' | 'onclose' | 'close'>;

const dialTrace = (): Line => webSocket('/ws/mcptrace?limit=500');

/**
 * follow tells of the trace whenever it has changed, until the function that
 * it returns is called. It comes back by itself: then the gateway sends its
 * latest messages again, and they stand in place of the old ones.
 */
export function follow(on: (state: TraceState) => void, dial = dialTrace, later: (f: () => void, ms: number) => unknown = setTimeout): () => void {
  let state: TraceState = { link: 'connecting', entries: null };
  let line: Line | null = null;
  let key = 0;
  let attempts = 0;
  let stopped = false;
  const tell = (change: Partial<TraceState>) => on((state = { ...state, ...change }));
  const open = () => {
    if (stopped) return;
    line = dial();
    line.onopen = () => {
      attempts = 0;
      tell({ link: 'live', entries: [] });
    };
    line.onmessage = (e) => {
      try {
        const entry = { ...(JSON.parse(String(e.data)) as TraceEntry), key: ++key };
        tell({ entries: [entry, ...(state.entries ?? [])].slice(0, maxTrace) });
      } catch {
        // not one of ours
      }
    };
    line.onclose = () => {
      if (stopped) return;
      tell({ link: 'broken' });
      later(open, Math.min(10_000, 500 * 2 ** attempts++));
    };
  };
  open();
  return () => {
    stopped = true;
    line?.close();
  };
}
