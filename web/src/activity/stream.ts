// The live MCP trace of the gateway.

import { openWebSocket } from '../lib/api';

/** TraceEntry is one message between the gateway and a server. */
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
  connection: 'connecting' | 'live' | 'broken';
  /** Newest first; null before the first connection. */
  entries: TraceEntry[] | null;
}

/** maxEntries is the number of messages kept in the page. */
export const maxEntries = 1000;

/** TraceSocket is the part of a WebSocket that followTrace uses; tests pass their own. */
export type TraceSocket = Pick<ReturnType<typeof openWebSocket>, 'onopen' | 'onmessage' | 'onclose' | 'close'>;

const openTraceSocket = (): TraceSocket => openWebSocket('/ws/mcptrace?limit=500');

/**
 * followTrace calls onChange whenever the trace has changed, until the returned function is
 * called. It reconnects automatically; the gateway then sends its latest
 * messages again, which replace the old ones.
 */
export function followTrace(onChange: (state: TraceState) => void, openSocket = openTraceSocket, setTimer: (f: () => void, ms: number) => unknown = setTimeout): () => void {
  let state: TraceState = { connection: 'connecting', entries: null };
  let socket: TraceSocket | null = null;
  let key = 0;
  let attempts = 0;
  let stopped = false;
  const update = (change: Partial<TraceState>) => onChange((state = { ...state, ...change }));
  const open = () => {
    if (stopped) return;
    socket = openSocket();
    socket.onopen = () => {
      attempts = 0;
      update({ connection: 'live', entries: [] });
    };
    socket.onmessage = (e) => {
      try {
        const entry = { ...(JSON.parse(String(e.data)) as TraceEntry), key: ++key };
        update({ entries: [entry, ...(state.entries ?? [])].slice(0, maxEntries) });
      } catch {
        // not a trace message
      }
    };
    socket.onclose = () => {
      if (stopped) return;
      update({ connection: 'broken' });
      setTimer(open, Math.min(10_000, 500 * 2 ** attempts++));
    };
  };
  open();
  return () => {
    stopped = true;
    socket?.close();
  };
}
