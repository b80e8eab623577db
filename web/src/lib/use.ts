import { useCallback, useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { ApiError } from './api';

/** QueryResult is the state of data read from the gateway. */
export interface QueryResult<T> {
  data?: T;
  error?: ApiError;
  loading: boolean;
  reload: () => Promise<void>;
}

function asApiError(e: unknown): ApiError {
  return e instanceof ApiError ? e : new ApiError(0, '', e instanceof Error ? e.message : String(e));
}

/**
 * useQuery calls read, again when key changes, and every pollMs milliseconds
 * while the page is visible. The last data stays until the next response, so that
 * the layout does not jump; a response that arrives too late is dropped.
 */
export function useQuery<T>(key: string | null, read: (signal: AbortSignal) => Promise<T>, pollMs = 0): QueryResult<T> {
  const [state, setState] = useState<{ key: string | null; data?: T; error?: ApiError; loading: boolean }>({ key: null, loading: key !== null });
  const latestRead = useRef(read);
  latestRead.current = read;
  const inFlight = useRef<AbortController | null>(null);

  const load = useCallback(async () => {
    if (key === null) return;
    inFlight.current?.abort();
    const abort = new AbortController();
    inFlight.current = abort;
    setState((s) => ({ ...s, loading: true }));
    try {
      const data = await latestRead.current(abort.signal);
      if (!abort.signal.aborted) setState({ key, data, loading: false });
    } catch (e) {
      if (!abort.signal.aborted) setState((s) => ({ key, data: s.key === key ? s.data : undefined, error: asApiError(e), loading: false }));
    }
  }, [key]);

  useEffect(() => {
    void load();
    return () => inFlight.current?.abort();
  }, [load]);

  useEffect(() => {
    if (!pollMs || key === null) return;
    const tick = setInterval(() => {
      if (!document.hidden) void load();
    }, pollMs);
    const onVisibilityChange = () => {
      if (!document.hidden) void load();
    };
    document.addEventListener('visibilitychange', onVisibilityChange);
    return () => {
      clearInterval(tick);
      document.removeEventListener('visibilitychange', onVisibilityChange);
    };
  }, [pollMs, key, load]);

  return { data: state.data, error: state.error, loading: state.loading, reload: load };
}

/** useDebounced returns value once it has not changed for ms milliseconds. */
export function useDebounced<T>(value: T, ms: number): T {
  const [debounced, setDebounced] = useState(value);
  useEffect(() => {
    const t = setTimeout(() => setDebounced(value), ms);
    return () => clearTimeout(t);
  }, [value, ms]);
  return debounced;
}

/** useLocalStorage keeps a value in this browser's storage. */
export function useLocalStorage(key: string, initial: string): [string, (v: string) => void] {
  const [value, setValue] = useState(() => {
    try {
      return localStorage.getItem(key) ?? initial;
    } catch {
      return initial;
    }
  });
  const store = useCallback(
    (v: string) => {
      setValue(v);
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

export function navigate(to: string, replace = false) {
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

export function useMediaQuery(query: string): boolean {
  return useSyncExternalStore(subscribeMedia(query), () => matchMedia(query).matches);
}
