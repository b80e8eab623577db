// The page's session, when it is not a cookie. It is kept in storage that is
// bound to this origin, including the port, and sent as a header, because cookies
// are sent to every service of the host.

const key = 'junctor.session';

/** storedSession returns the session of this browser, or ''. */
export function storedSession(): string {
  try {
    return localStorage.getItem(key) ?? '';
  } catch {
    return ''; // storage may be disabled
  }
}

export function storeSession(session: string) {
  try {
    if (session) localStorage.setItem(key, session);
    else localStorage.removeItem(key);
  } catch {
    // without storage the page uses a cookie, or is not signed in
  }
}

/** onSessionChange calls f when another tab has signed in or out. */
export function onSessionChange(f: () => void): () => void {
  const onStorage = (e: StorageEvent) => {
    if (e.key === key || e.key === null) f();
  };
  window.addEventListener('storage', onStorage);
  return () => window.removeEventListener('storage', onStorage);
}

/** sessionHeaders returns the headers that identify the caller. */
export function sessionHeaders(session = storedSession()): Record<string, string> {
  return session ? { 'X-Junctor-Session': session } : {};
}

/**
 * takeUrlParameter returns the token of junctor serve, or another parameter, and removes it
 * from the URL, so that it is not visible there.
 */
export function takeUrlParameter(name = 'token'): string {
  const url = new URL(location.href);
  const token = url.searchParams.get(name) ?? '';
  if (url.searchParams.has(name)) {
    url.searchParams.delete(name);
    history.replaceState(history.state, '', url);
  }
  return token;
}

/** WebSocketLike is the part of a WebSocket that the page uses; tests pass their own. */
export interface WebSocketLike {
  onopen: (() => void) | null;
  onmessage: ((e: { data: unknown }) => void) | null;
  onclose: ((e: { code: number; reason: string }) => void) | null;
  send(data: string): void;
  close(code?: number): void;
}

/**
 * connectWebSocket opens a WebSocket. Pages cannot set its headers, so a session is
 * presented as a ticket that is valid for one connection.
 */
export function connectWebSocket(url: string, ticket: () => Promise<string>, createWebSocket: (url: string) => WebSocketLike = (u) => new WebSocket(u) as unknown as WebSocketLike): WebSocketLike {
  if (!storedSession()) return createWebSocket(url);
  let inner: WebSocketLike | null = null;
  let closed = false;
  const outer: WebSocketLike = {
    onopen: null,
    onmessage: null,
    onclose: null,
    send: (data) => inner?.send(data),
    close: (code) => {
      closed = true;
      inner?.close(code);
    },
  };
  const open = (t: string) => {
    if (closed) return;
    const u = new URL(url);
    u.searchParams.set('ticket', t);
    inner = createWebSocket(u.toString());
    inner.onopen = () => outer.onopen?.();
    inner.onmessage = (e) => outer.onmessage?.(e);
    inner.onclose = (e) => outer.onclose?.(e);
  };
  ticket().then(open, () => {
    if (!closed) outer.onclose?.({ code: 1006, reason: 'no ticket' });
  });
  return outer;
}
