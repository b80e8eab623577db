// The client of the gateway's API: errors, streams and types. Every failure is an
// ApiError whose message tells the user what to do.

import type { components, paths } from '../../generated/openapi';
import { connectWebSocket, sessionHeaders, storedSession, storeSession, takeUrlParameter } from './session';

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

/** ConnectivityListener is called after every request: whether the gateway answered, and whether it requires a sign-in. */
type ConnectivityListener = (state: { online: boolean; signIn: boolean }) => void;
const connectivityListeners = new Set<ConnectivityListener>();
export function onConnectivityChange(f: ConnectivityListener): () => void {
  connectivityListeners.add(f);
  return () => connectivityListeners.delete(f);
}
function notifyConnectivity(online: boolean, signIn: boolean) {
  for (const f of connectivityListeners) f({ online, signIn });
}

const sessionEndListeners = new Set<() => void>();
/** onSessionEnd calls f when the gateway no longer accepts the page's session. */
export function onSessionEnd(f: () => void): () => void {
  sessionEndListeners.add(f);
  return () => sessionEndListeners.delete(f);
}
function notifySessionEnd() {
  for (const f of sessionEndListeners) f();
}

/** signIn exchanges a key, the token of junctor serve, or the ticket of a sign-in at the provider, for a session. */
export async function signIn(credential: { key: string } | { token: string } | { signin: string }): Promise<void> {
  const { session } = await send<Session>('POST', '/api/session', credential);
  storeSession(session ?? '');
}

export async function signOut(): Promise<void> {
  await send('DELETE', '/api/session').finally(() => storeSession(''));
}

/** exchangeToken signs in with the token, or the ticket, in the URL. It returns an error message, or ''. */
export async function exchangeToken(): Promise<string> {
  const signin = takeUrlParameter('signin');
  if (signin) {
    try {
      await signIn({ signin });
      return '';
    } catch (e) {
      return e instanceof Error ? e.message : String(e);
    }
  }
  const token = takeUrlParameter();
  if (!token) return '';
  try {
    await signIn({ token });
    return '';
  } catch (e) {
    return e instanceof ApiError && e.status === 401 ? 'The token in the URL is not valid. Run junctor open to open this page with a valid one.' : e instanceof Error ? e.message : String(e);
  }
}

/** openWebSocket opens a WebSocket to the gateway with the page's session. */
export function openWebSocket(path: string) {
  const url = `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}${path}`;
  return connectWebSocket(url, async () => (await send<{ ticket: string }>('POST', '/api/session/ticket')).ticket);
}

async function errorFrom(res: Response): Promise<ApiError> {
  const text = await res.text().catch(() => '');
  try {
    const body = JSON.parse(text) as Partial<Schemas['Error']>;
    return new ApiError(res.status, body.code ?? '', body.message || res.statusText, body.requestId, body.details);
  } catch {
    return new ApiError(res.status, '', text.slice(0, 200) || res.statusText || `the gateway responded with status ${res.status}`);
  }
}

export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  let res: Response;
  const session = storedSession();
  try {
    res = await fetch(path, { credentials: 'same-origin', ...init, headers: { ...init.headers, ...sessionHeaders(session) } });
    if (res.status === 401 && session) {
      // The session has ended. The request may still be allowed without one.
      if (storedSession() === session) storeSession('');
      res = await fetch(path, { credentials: 'same-origin', ...init });
      notifySessionEnd();
    }
  } catch (e) {
    if (e instanceof DOMException && e.name === 'AbortError') throw e;
    notifyConnectivity(false, false);
    throw new ApiError(0, 'OFFLINE', 'Cannot reach the gateway. It may be stopped or restarting.');
  }
  notifyConnectivity(true, res.status === 401);
  if (!res.ok) throw await errorFrom(res);
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

/** readLines splits a body into lines; a long line is copied only once. */
export async function* readLines(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
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

/** runScript runs a script and reports its calls as they start and end. */
export async function runScript(code: string, onCall: (c: RunResult['calls'][number]) => void, signal: AbortSignal): Promise<RunResult> {
  const res = await request('/run', {
    method: 'POST',
    signal,
    headers: { 'Content-Type': 'application/json', Accept: 'application/x-ndjson' },
    body: JSON.stringify({ code }),
  });
  if (!res.body) throw new ApiError(res.status, '', 'The response has no body.');
  for await (const line of readLines(res.body)) {
    if (!line.trim()) continue;
    const message = JSON.parse(line) as { type: string; call: RunResult['calls'][number]; result: RunResult; error: Schemas['Error'] };
    if (message.type === 'call') onCall(message.call);
    else if (message.type === 'result') return message.result;
    else if (message.type === 'error') throw new ApiError(res.status, message.error.code, message.error.message, message.error.requestId, message.error.details);
  }
  throw new ApiError(0, 'BROKEN', 'The response ended early. See the call log for the outcome.');
}

/** callTool calls a tool and reports notifications and questions as they arrive. */
export async function callTool(
  body: { server: string; tool: string; arguments: unknown; approved?: boolean; /** An app makes the call. */ app?: boolean; /** The kinds of question that the page can show: elicitation, sampling. */ ask?: string[] },
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
  for await (const line of readLines(res.body)) {
    if (!line.trim()) continue;
    last = JSON.parse(line) as CallAnswer;
    if (last.type !== 'result' && last.type !== 'error') onNotification(last);
  }
  if (last?.type === 'error' && last.error) {
    throw new ApiError(res.status, last.error.code, last.error.message, last.requestId, last.error.details);
  }
  if (last?.type !== 'result') throw new ApiError(0, 'BROKEN', 'The response ended early. See the call log for the outcome.');
  return last;
}

/** readEvents reads server-sent events with fetch, which unlike EventSource reports why a stream was refused. */
export async function* readEvents(path: string, signal: AbortSignal): AsyncGenerator<{ event: string; data: string }> {
  const res = await request(path, { signal, headers: { Accept: 'text/event-stream' } });
  if (!res.body) return;
  let event = 'message';
  let data: string[] = [];
  for await (const raw of readLines(res.body)) {
    const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
    if (line === '') {
      if (data.length > 0) yield { event, data: data.join('\n') };
      event = 'message';
      data = [];
    } else if (line.startsWith('event:')) event = line.slice(6).trim();
    else if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''));
  }
}

// The types of the responses, from openapi.json.

type Schemas = components['schemas'];

/** GetResponse is the response to GET at a path. */
export type GetResponse<P extends keyof paths> = paths[P] extends { get: { responses: { 200: { content: { 'application/json': infer R } } } } } ? R : never;

export type Session = Schemas['CallerInfo'];
export type Status = Schemas['Status'];
export type ServerState = Schemas['ServerState'];
export type Server = Schemas['Server'];
export type Tool = Schemas['ToolInfo'];
export type ToolList = Schemas['ToolInfoList'];
export type ToolDetails = Schemas['ToolDetails'] & { inputSchema: Record<string, unknown>; outputSchema?: Record<string, unknown> };
/** Call is a record of the call log. Lists omit arguments and result. */
export type Call = Schemas['Call'];
/** CallSummary summarizes the calls of a server, tool, caller, API or interval, or all. */
export type CallSummary = Schemas['CallSummary'];
export type CallStats = Schemas['CallStats'];
export type CallAnswer = Schemas['CallAnswer'];
export type Key = Schemas['Key'];
export type Profile = Schemas['Profile'];
export type ProfileConfig = Schemas['ProfileConfig'];
export type Configuration = Schemas['Configuration'];
export type Setting = Schemas['Setting'];
export type Candidate = Schemas['Candidate'];
export type ModelInfo = Schemas['ModelInfo'];
export type ChatSession = Schemas['ChatSession'];
export type LiveState = Schemas['LiveState'];
export type HistoryMessage = Schemas['HistoryMessage'];
export type HistoryPart = Schemas['Part'];
export type TraceEntry = Schemas['TraceEntry'];
export type WaitingCall = Schemas['WaitingCall'];
export type ApprovalRequest = Schemas['ApprovalRequest'];
export type Scope = Schemas['Scope'];
export type RunResult = Schemas['RunResult'];
