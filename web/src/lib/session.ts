// The page's session where it is not a cookie: kept in storage that is bound
// to this origin, port included, and sent as a header. Cookies would go to
// every other service of the host.

const key = 'junctor.session';

/** stored is the session of this browser, or ''. */
export function stored(): string {
  try {
    return localStorage.getItem(key) ?? '';
  } catch {
    return ''; // storage may be turned off
  }
}

export function keep(session: string) {
  try {
    if (session) localStorage.setItem(key, session);
    else localStorage.removeItem(key);
  } catch {
    // without storage the page is signed in by cookie, or not at all
  }
}

/** onChange tells when another tab has signed in or out. */
export function onChange(f: () => void): () => void {
  const heard = (e: StorageEvent) => {
    if (e.key === key || e.key === null) f();
  };
  window.addEventListener('storage', heard);
  return () => window.removeEventListener('storage', heard);
}

/** headers are those that say who asks. */
export function headers(session = stored()): Record<string, string> {
  return session ? { 'X-Junctor-Session': session } : {};
}

/** takeToken takes the token of junctor serve out of the address, so that nobody reads it there. */
export function takeToken(): string {
  const url = new URL(location.href);
  const token = url.searchParams.get('token') ?? '';
  if (url.searchParams.has('token')) {
    url.searchParams.delete('token');
    history.replaceState(history.state, '', url);
  }
  return token;
}

interface Socket {
  onopen: (() => void) | null;
  onmessage: ((e: { data: unknown }) => void) | null;
  onclose: ((e: { code: number; reason: string }) => void) | null;
  send(data: string): void;
  close(code?: number): void;
}

/**
 * connect opens a WebSocket. Pages cannot set its headers, so a session is
 * presented as a ticket that is good for one connection.
 */
export function connect(url: string, ticket: () => Promise<string>, dial: (url: string) => Socket = (u) => new WebSocket(u) as unknown as Socket): Socket {
  if (!stored()) return dial(url);
  let inner: Socket | null = null;
  let closed = false;
  const outer: Socket = {
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
    inner = dial(u.toString());
    inner.onopen = () => outer.onopen?.();
    inner.onmessage = (e) => outer.onmessage?.(e);
    inner.onclose = (e) => outer.onclose?.(e);
  };
  ticket().then(open, () => {
    if (!closed) outer.onclose?.({ code: 1006, reason: 'no ticket' });
  });
  return outer;
}
