// The client of the gateway's API: errors, streams and types. Every failure is an
// ApiError whose message says what to do.

import { connect, headers, keep, stored, takeToken } from './session';

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly requestId = '',
    readonly details: unknown = undefined,
  ) {
    super(message);
  }
  /** The gateway could not be reached at all. */
  get offline(): boolean {
    return this.status === 0;
  }
}

/** Listener is called after every request: whether the gateway answered, and whether it requires a sign-in. */
type Listener = (state: { online: boolean; signIn: boolean }) => void;
const listeners = new Set<Listener>();
export function onReach(f: Listener): () => void {
  listeners.add(f);
  return () => listeners.delete(f);
}
function tell(online: boolean, signIn: boolean) {
  for (const f of listeners) f({ online, signIn });
}

const ends = new Set<() => void>();
/** onSessionEnd calls f when the gateway no longer accepts the page's session. */
export function onSessionEnd(f: () => void): () => void {
  ends.add(f);
  return () => ends.delete(f);
}
function sessionEnded() {
  for (const f of ends) f();
}

/** signIn exchanges a key, the token of junctor serve, or the ticket of a sign-in at the provider, for a session. */
export async function signIn(credential: { key: string } | { token: string } | { signin: string }): Promise<void> {
  const { session } = await send<Session & { session?: string }>('POST', '/api/session', credential);
  keep(session ?? '');
}

export async function signOut(): Promise<void> {
  await send('DELETE', '/api/session').finally(() => keep(''));
}

/** exchangeToken signs in with the token, or the ticket, in the URL. It returns an error message, or ''. */
export async function exchangeToken(): Promise<string> {
  const signin = takeToken('signin');
  if (signin) {
    try {
      await signIn({ signin });
      return '';
    } catch (e) {
      return e instanceof Error ? e.message : String(e);
    }
  }
  const token = takeToken();
  if (!token) return '';
  try {
    await signIn({ token });
    return '';
  } catch (e) {
    return e instanceof ApiError && e.status === 401 ? 'The token in the URL is not valid. Run junctor open to open this page with a valid one.' : e instanceof Error ? e.message : String(e);
  }
}

/** webSocket opens a WebSocket to the gateway with the page's session. */
export function webSocket(path: string) {
  const url = `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}${path}`;
  return connect(url, async () => (await send<{ ticket: string }>('POST', '/api/session/ticket')).ticket);
}

async function failure(res: Response): Promise<ApiError> {
  const text = await res.text().catch(() => '');
  try {
    const body = JSON.parse(text) as { message?: string; code?: string; requestId?: string; details?: unknown };
    return new ApiError(res.status, body.code ?? '', body.message || res.statusText, body.requestId, body.details);
  } catch {
    return new ApiError(res.status, '', text.slice(0, 200) || res.statusText || `the gateway responded with status ${res.status}`);
  }
}

export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  let res: Response;
  const session = stored();
  try {
    res = await fetch(path, { credentials: 'same-origin', ...init, headers: { ...init.headers, ...headers(session) } });
    if (res.status === 401 && session) {
      // The session has ended. The request may still be allowed without one.
      if (stored() === session) keep('');
      res = await fetch(path, { credentials: 'same-origin', ...init });
      sessionEnded();
    }
  } catch (e) {
    if (e instanceof DOMException && e.name === 'AbortError') throw e;
    tell(false, false);
    throw new ApiError(0, 'OFFLINE', 'Cannot reach the gateway. It may be stopped or restarting.');
  }
  tell(true, res.status === 401);
  if (!res.ok) throw await failure(res);
  return res;
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const res = await request(path, { signal, headers: { Accept: 'application/json' } });
  return (await res.json()) as T;
}

export async function send<T = unknown>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const res = await request(path, {
    method,
    signal,
    headers: { Accept: 'application/json', ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (res.status === 204) return undefined as T;
  return (await res.json()) as T;
}

/** lines splits a body into lines; a long line is copied only once. */
export async function* lines(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let parts: string[] = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      let text = decoder.decode(value ?? new Uint8Array(), { stream: !done });
      let at: number;
      while ((at = text.indexOf('\n')) >= 0) {
        parts.push(text.slice(0, at));
        yield parts.join('');
        parts = [];
        text = text.slice(at + 1);
      }
      if (text) parts.push(text);
      if (done) break;
    }
    if (parts.length > 0) yield parts.join('');
  } finally {
    reader.cancel().catch(() => {});
  }
}

export interface CallAnswer {
  type: 'notification' | 'result' | 'error';
  method?: string;
  params?: unknown;
  result?: unknown;
  isError?: boolean;
  error?: { message: string; code: string; details?: unknown; requestId?: string };
  requestId?: string;
  durationMs?: number;
}

/** runScript runs a script and reports its calls as they begin and end. */
export async function runScript<Call, Outcome>(code: string, onCall: (c: Call) => void, signal: AbortSignal): Promise<Outcome> {
  const res = await request('/run', {
    method: 'POST',
    signal,
    headers: { 'Content-Type': 'application/json', Accept: 'application/x-ndjson' },
    body: JSON.stringify({ code }),
  });
  if (!res.body) throw new ApiError(res.status, '', 'The response has no body.');
  for await (const line of lines(res.body)) {
    if (!line.trim()) continue;
    const piece = JSON.parse(line) as { type: string; call: Call; result: Outcome; error: { code: string; message: string; details?: unknown; requestId?: string } };
    if (piece.type === 'call') onCall(piece.call);
    else if (piece.type === 'result') return piece.result;
    else if (piece.type === 'error') throw new ApiError(res.status, piece.error.code, piece.error.message, piece.error.requestId, piece.error.details);
  }
  throw new ApiError(0, 'BROKEN', 'The response ended early. See the call log for the outcome.');
}

/** callTool calls a tool and reports notifications as they arrive. */
export async function callTool(
  body: { server: string; tool: string; arguments: unknown; approved?: boolean; /** An app makes the call. */ app?: boolean },
  onNotification: (a: CallAnswer) => void,
  signal: AbortSignal,
): Promise<CallAnswer> {
  const res = await request('/api/call', {
    method: 'POST',
    signal,
    headers: { 'Content-Type': 'application/json', Accept: 'application/x-ndjson' },
    body: JSON.stringify(body),
  });
  if (!res.body) throw new ApiError(res.status, '', 'The response has no body.');
  let last: CallAnswer | undefined;
  for await (const line of lines(res.body)) {
    if (!line.trim()) continue;
    last = JSON.parse(line) as CallAnswer;
    if (last.type === 'notification') onNotification(last);
  }
  if (last?.type === 'error' && last.error) {
    throw new ApiError(res.status, last.error.code, last.error.message, last.requestId, last.error.details);
  }
  if (last?.type !== 'result') throw new ApiError(0, 'BROKEN', 'The response ended early. See the call log for the outcome.');
  return last;
}

/** events reads server-sent events with fetch, which unlike EventSource reports why a stream was refused. */
export async function* events(path: string, signal: AbortSignal): AsyncGenerator<{ event: string; data: string }> {
  const res = await request(path, { signal, headers: { Accept: 'text/event-stream' } });
  if (!res.body) return;
  let event = 'message';
  let data: string[] = [];
  for await (const raw of lines(res.body)) {
    const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
    if (line === '') {
      if (data.length > 0) yield { event, data: data.join('\n') };
      event = 'message';
      data = [];
    } else if (line.startsWith('event:')) event = line.slice(6).trim();
    else if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''));
  }
}

// The types of the responses.

export interface Session {
  caller: string;
  admin: boolean;
  signedIn: boolean;
  needsSignIn: boolean;
  authenticated: boolean;
  /** The name of the provider at which people can sign in. */
  oidc?: string;
}

export interface Status {
  version: string;
  node: string;
  pid: number;
  started: string;
  uptimeSeconds: number;
  tools: number;
  /** The catalogue's version: it changes when a tool changes. */
  catalog: number;
  servers: { name: string; status: ServerState; tools: number; reason?: string }[];
}

export type ServerState = 'connecting' | 'connected' | 'disconnected' | 'auth_required' | 'disabled';

export interface Server {
  name: string;
  status: ServerState;
  since?: string;
  reason?: string;
  attempts?: number;
  nextTry?: string;
  lastFailure?: string;
  failedAt?: string;
  lost?: number;
  transport: string;
  protocol?: string;
  era?: string;
  serverName?: string;
  serverTitle?: string;
  serverVersion?: string;
  pid?: number;
  isolation?: string;
  stderr?: string[];
  strayLines?: number;
  lastStray?: string;
  oversized?: number;
  tools: number;
  enabledTools: number;
  problems?: string[];
  latencyMs?: number;
  inFlight?: number;
  sessions?: number;
  description?: string;
  instructions?: string;
  tags?: string[];
}

export interface Stats {
  calls: number;
  successes: number;
  failures: number;
  lastFailure?: string;
  lastUse?: string;
  meanLatencyNs: number;
  circuit: string;
}

export interface Tool {
  name: string;
  server: string;
  tool: string;
  title?: string;
  summary: string;
  signature: string;
  tags?: string[];
  enabled: boolean;
  reason?: string;
  approval?: string;
  changed?: boolean;
  /** The address of the app that shows its results. */
  app?: string;
  flags?: string[];
  stats: Stats;
  relevance?: number;
}

export interface ToolDetails extends Tool {
  description: string;
  inputSchema: Record<string, unknown>;
  outputSchema?: Record<string, unknown>;
  annotations: {
    title?: string;
    readOnlyHint?: boolean;
    destructiveHint?: boolean;
    idempotentHint?: boolean;
    openWorldHint?: boolean;
  };
  guidance?: string;
  definition: unknown;
}

export interface ToolList {
  tools: Tool[];
  total: number;
  pending?: string[];
  version: number;
}

/** Call is a record of the call log. Lists omit arguments and result. */
export interface Call {
  seq: number;
  id: string;
  /** Chosen by the caller; not necessarily unique. */
  requestId?: string;
  time: string;
  durationMs: number;
  face?: string;
  caller?: string;
  sessionId?: string;
  server?: string;
  tool?: string;
  method?: string;
  status: 'ok' | 'error' | 'failed';
  code?: string;
  error?: string;
  arguments?: unknown;
  result?: unknown;
  resultBytes?: number;
  traceId?: string;
  node?: string;
  stages?: { name: string; tookMs: number }[];
}

/** Figures summarize the calls of a server, tool, caller, API or interval, or all. */
export interface Figures {
  server?: string;
  tool?: string;
  caller?: string;
  callerName?: string;
  face?: string;
  from?: string;
  calls: number;
  errors: number;
  failed: number;
  p50Ms: number;
  p95Ms: number;
  p99Ms: number;
}

export interface CallStats {
  total: Figures;
  servers: Figures[];
  tools: Figures[];
  callers: Figures[];
  faces: Figures[];
  intervals?: Figures[];
}

export interface Key {
  id: string;
  name: string;
  hint: string;
  admin: boolean;
  servers?: string[];
  tools?: string[];
  chat?: boolean; // may use models; if not set, only keys without restrictions may
  tokensPerDay?: number;
  created: string;
  expires?: string;
  revoked?: string;
  lastUsed?: string;
}

export interface Setting {
  key: string;
  value: unknown;
  source: string;
  from: string;
}

export interface Candidate {
  name: string;
  as: string;
  state: 'new' | 'same' | 'differs' | 'self';
  client: string;
  path: string;
  starts: string;
  notes?: string[];
  secrets?: string[];
}

export interface ModelInfo {
  id: string;
  provider: string;
  model: string;
  contextWindow: number;
  default: boolean;
  /** It reads PDF documents. */
  documents?: boolean;
}

export interface ChatSession {
  id: string;
  title: string;
  model?: string;
  created: string;
  updated: string;
  active: boolean;
  pinned?: boolean;
  /** The reply waits for the user. */
  waiting?: boolean;
  /** In a search: the text around the match. */
  match?: string;
}
