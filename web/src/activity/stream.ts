// The live MCP trace of the gateway.

import { openWebSocket } from '../lib/api';

/** One message between the gateway and a server. */
export interface TraceEntry {
  /** Increases with every message; assigned by the page. */
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

/** maxTrace is the number of messages kept in the page. */
export const maxTrace = 1000;

/** Line is the part of a WebSocket that follow uses; tests pass their own. */
export type Line = Pick<ReturnType<typeof openWebSocket>, 'onopen' | 'onmessage' | 'onclose' | 'close'>;

const dialTrace = (): Line => openWebSocket('/ws/mcptrace?limit=500');

/**
 * follow calls on whenever the trace has changed, until the returned function is
 * called. It reconnects automatically; the gateway then sends its latest
 * messages again, which replace the old ones.
 */
export function follow(on: (state: TraceState) => void, dial = dialTrace, later: (f: () => void, ms: number) => unknown = setTimeout): () => void {
  let state: TraceState = { link: 'connecting', entries: null };
  let line: Line | null = null;
  let key = 0;
  let attempts = 0;
  let stopped = false;
  const publish = (change: Partial<TraceState>) => on((state = { ...state, ...change }));
  const open = () => {
    if (stopped) return;
    line = dial();
    line.onopen = () => {
      attempts = 0;
      publish({ link: 'live', entries: [] });
    };
    line.onmessage = (e) => {
      try {
        const entry = { ...(JSON.parse(String(e.data)) as TraceEntry), key: ++key };
        publish({ entries: [entry, ...(state.entries ?? [])].slice(0, maxTrace) });
      } catch {
        // not a trace message
      }
    };
    line.onclose = () => {
      if (stopped) return;
      publish({ link: 'broken' });
      later(open, Math.min(10_000, 500 * 2 ** attempts++));
    };
  };
  open();
  return () => {
    stopped = true;
    line?.close();
  };
}
