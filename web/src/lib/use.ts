import { useCallback, useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { ApiError } from './api';

/** Resource is data read from the gateway. */
export interface Resource<T> {
  data?: T;
  error?: ApiError;
  loading: boolean;
  reload: () => Promise<void>;
}

function asApiError(e: unknown): ApiError {
  return e instanceof ApiError ? e : new ApiError(0, '', e instanceof Error ? e.message : String(e));
}

/**
 * useResource calls read, again when key changes, and every `every` milliseconds
 * while the page is visible. The last data stays until the next response, so that
 * the layout does not jump; a response that arrives too late is dropped.
 */
export function useResource<T>(key: string | null, read: (signal: AbortSignal) => Promise<T>, every = 0): Resource<T> {
  const [state, set] = useState<{ key: string | null; data?: T; error?: ApiError; loading: boolean }>({ key: null, loading: key !== null });
  const reader = useRef(read);
  reader.current = read;
  const running = useRef<AbortController | null>(null);

  const load = useCallback(async () => {
    if (key === null) return;
    running.current?.abort();
    const abort = new AbortController();
    running.current = abort;
    set((s) => ({ ...s, loading: true }));
    try {
      const data = await reader.current(abort.signal);
      if (!abort.signal.aborted) set({ key, data, loading: false });
    } catch (e) {
      if (!abort.signal.aborted) set((s) => ({ key, data: s.key === key ? s.data : undefined, error: asApiError(e), loading: false }));
    }
  }, [key]);

  useEffect(() => {
    void load();
    return () => running.current?.abort();
  }, [load]);

  useEffect(() => {
    if (!every || key === null) return;
    const tick = setInterval(() => {
      if (!document.hidden) void load();
    }, every);
    const seen = () => {
      if (!document.hidden) void load();
    };
    document.addEventListener('visibilitychange', seen);
    return () => {
      clearInterval(tick);
      document.removeEventListener('visibilitychange', seen);
    };
  }, [every, key, load]);

  return { data: state.data, error: state.error, loading: state.loading, reload: load };
}

/** useDebounced returns value once it has not changed for ms milliseconds. */
export function useDebounced<T>(value: T, ms: number): T {
  const [held, set] = useState(value);
  useEffect(() => {
    const t = setTimeout(() => set(value), ms);
    return () => clearTimeout(t);
  }, [value, ms]);
  return held;
}

/** useStored keeps a value in this browser's storage. */
export function useStored(key: string, initial: string): [string, (v: string) => void] {
  const [value, set] = useState(() => {
    try {
      return localStorage.getItem(key) ?? initial;
    } catch {
      return initial;
    }
  });
  const store = useCallback(
    (v: string) => {
      set(v);
      try {
        localStorage.setItem(key, v);
      } catch {
        // Without storage the choice lasts until the page is closed.
      }
    },
    [key],
  );
  return [value, store];
}

// The URL fragment: #/view/part/part?name=value

export interface Route {
  parts: string[];
  query: URLSearchParams;
}

export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const parts = path.split('/').filter(Boolean).map(safeDecode);
  return { parts, query: new URLSearchParams(query) };
}

function safeDecode(s: string): string {
  try {
    return decodeURIComponent(s);
  } catch {
    return s;
  }
}

export function href(parts: string[], query?: Record<string, string | undefined>): string {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(query ?? {})) if (v) q.set(k, v);
  const text = q.toString();
  return '#/' + parts.map(encodeURIComponent).join('/') + (text ? '?' + text : '');
}

export function go(to: string, replace = false) {
  if (replace) {
    history.replaceState(null, '', to);
    window.dispatchEvent(new HashChangeEvent('hashchange'));
  } else location.hash = to;
}

const subscribeHash = (f: () => void) => {
  window.addEventListener('hashchange', f);
  return () => window.removeEventListener('hashchange', f);
};

export function useRoute(): Route {
  const hash = useSyncExternalStore(subscribeHash, () => location.hash);
  const last = useRef<{ hash: string; route: Route }>(undefined);
  if (last.current?.hash !== hash) last.current = { hash, route: parseRoute(hash) };
  return last.current.route;
}

const subscribeMedia = (query: string) => (f: () => void) => {
  const m = matchMedia(query);
  m.addEventListener('change', f);
  return () => m.removeEventListener('change', f);
};

export function useMedia(query: string): boolean {
  return useSyncExternalStore(subscribeMedia(query), () => matchMedia(query).matches);
}
