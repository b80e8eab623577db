// The host's side of MCP Apps (io.modelcontextprotocol/ui, 2026-01-26): JSON-RPC
// with the app in a frame. It depends on neither the DOM nor the gateway.

/** Limits of one app. An app that exceeds the rate is stopped. */
export const appLimits = { messagesPerSecond: 200, pending: 16, height: 800 };

const protocolVersions = ['2026-01-26', '2025-11-21'];

/** HostCallbacks are the functions that the host of an app calls. */
export interface HostCallbacks {
  /** Sends a message to the app. */
  post: (message: unknown) => void;
  /** Calls a tool of the app's server. */
  callTool: (name: string, args: Record<string, unknown>, signal: AbortSignal) => Promise<unknown>;
  /** Reads a resource of the app's server. */
  readResource: (uri: string, signal: AbortSignal) => Promise<unknown>;
  /** Asks the user whether to open a link. */
  openLink: (url: string, signal: AbortSignal) => Promise<boolean>;
  /** Asks the user whether to send a message to the chat; not set outside the chat. */
  sendMessage?: (text: string, signal: AbortSignal) => Promise<boolean>;
  /** Sets the height of the app's frame, in pixels. */
  resize: (height: number) => void;
  /** Removes an app that exceeded a limit. */
  stop: (reason: string) => void;
}

/** RpcError is a JSON-RPC error response to the app. */
export class RpcError extends Error {
  constructor(
    message: string,
    readonly code = -32000,
  ) {
    super(message);
  }
}

type JsonObject = Record<string, unknown>;
const asObject = (v: unknown): JsonObject => (typeof v === 'object' && v !== null && !Array.isArray(v) ? (v as JsonObject) : {});

/** Outcome is the outcome of the tool call, undefined while it runs. */
export type Outcome = { result: unknown } | { cancelled: string } | undefined;

export class AppHost {
  private state: 'new' | 'initializing' | 'ready' | 'closed' = 'new';
  private pending = new Map<string | number, AbortController>();
  private currentSecond = 0;
  private receivedInSecond = 0;
  private input: JsonObject = {};
  private outcome: Outcome;
  private inputSent = false;
  private outcomeSent = false;
  private teardownDone?: () => void;

  constructor(
    private callbacks: HostCallbacks,
    private context: JsonObject,
    private capabilities: JsonObject,
    private now: () => number = () => performance.now(),
  ) {}

  /** countMessage counts a message of any kind, and reports whether the app is within its rate limit. */
  countMessage(): boolean {
    const second = Math.floor(this.now() / 1000);
    if (second !== this.currentSecond) {
      this.currentSecond = second;
      this.receivedInSecond = 0;
    }
    if (++this.receivedInSecond <= appLimits.messagesPerSecond) return true;
    if (this.state !== 'closed') {
      this.close();
      this.callbacks.stop('It sent too many messages.');
    }
    return false;
  }

  /** receive handles a message of the app, as text. */
  receive(text: string): void {
    if (this.state === 'closed') return;
    let m: JsonObject;
    try {
      m = asObject(JSON.parse(text));
    } catch {
      return;
    }
    const id = m.id;
    const isRequest = typeof id === 'string' || typeof id === 'number';
    if (typeof m.method !== 'string') {
      if (id === 'teardown') this.teardownDone?.();
      return;
    }
    if (!isRequest) return this.handleNotification(m.method, asObject(m.params));
    this.handleRequest(id, m.method, asObject(m.params)).then(
      (result) => this.send({ id, result }),
      (e: unknown) => this.send({ id, error: { code: e instanceof RpcError ? e.code : -32000, message: e instanceof Error ? e.message : String(e) } }),
    );
  }

  /** setToolCall sends the app the arguments of the call and, when it has ended, its outcome. */
  setToolCall(input: JsonObject, outcome: Outcome): void {
    this.input = input;
    this.outcome = outcome;
    if (this.state === 'ready') this.sendToolCall();
  }

  /** updateContext sends changes of the host context to the app. */
  updateContext(context: JsonObject): void {
    this.context = { ...this.context, ...context };
    if (this.state === 'ready') this.notify('ui/notifications/host-context-changed', context);
  }

  /** tearDown asks the app to shut down, waits for its response up to a timeout, and closes the host. */
  async tearDown(reason: string, timeoutMs = 500): Promise<void> {
    if (this.state === 'ready') {
      await new Promise<void>((done) => {
        this.teardownDone = done;
        setTimeout(done, timeoutMs);
        this.send({ id: 'teardown', method: 'ui/resource-teardown', params: { reason } });
      });
    }
    this.close();
  }

  /** close aborts all pending requests of the app. */
  close(): void {
    this.state = 'closed';
    for (const a of this.pending.values()) a.abort();
    this.pending.clear();
  }

  private send(message: JsonObject): void {
    if (this.state !== 'closed') this.callbacks.post({ jsonrpc: '2.0', ...message });
  }

  private notify(method: string, params: unknown): void {
    this.send({ method, params });
  }

  private sendToolCall(): void {
    if (!this.inputSent) this.notify('ui/notifications/tool-input', { arguments: this.input });
    this.inputSent = true;
    const o = this.outcome;
    if (!o || this.outcomeSent) return;
    this.outcomeSent = true;
    if ('cancelled' in o) this.notify('ui/notifications/tool-cancelled', { reason: o.cancelled });
    else this.notify('ui/notifications/tool-result', o.result);
  }

  private handleNotification(method: string, params: JsonObject): void {
    switch (method) {
      case 'ui/notifications/initialized':
        if (this.state !== 'initializing') return;
        this.state = 'ready';
        return this.sendToolCall();
      case 'ui/notifications/size-changed': {
        const height = Number(params.height);
        if (Number.isFinite(height) && height >= 0) this.callbacks.resize(Math.min(Math.ceil(height), appLimits.height));
        return;
      }
      case 'notifications/cancelled':
        this.pending.get(params.requestId as string | number)?.abort();
    }
  }

  private async handleRequest(id: string | number, method: string, params: JsonObject): Promise<unknown> {
    if (method === 'ping') return {};
    if (method === 'ui/initialize') {
      if (this.state === 'new') this.state = 'initializing';
      const requestedVersion = String(params.protocolVersion);
      return { protocolVersion: protocolVersions.includes(requestedVersion) ? requestedVersion : protocolVersions[0], hostInfo: { name: 'Junctor', version: '1' }, hostCapabilities: this.capabilities, hostContext: this.context };
    }
    if (this.state === 'new') throw new RpcError('ui/initialize must come first', -32600);
    if (method === 'ui/request-display-mode') return { mode: 'inline' };
    const handler = this.requestHandlers.get(method);
    if (!handler) throw new RpcError(`the host does not support ${method.slice(0, 100)}`, -32601);
    if (this.pending.has(id)) throw new RpcError('the id of the request is in use', -32600);
    if (this.pending.size >= appLimits.pending) throw new RpcError(`${appLimits.pending} requests are pending; wait for one of them`);
    const abort = new AbortController();
    this.pending.set(id, abort);
    try {
      return await handler(params, abort.signal);
    } finally {
      if (this.pending.get(id) === abort) this.pending.delete(id);
    }
  }

  private requestHandlers = new Map<string, (params: JsonObject, signal: AbortSignal) => Promise<unknown>>(Object.entries({
    'tools/call': async (p: JsonObject, signal: AbortSignal) => {
      if (typeof p.name !== 'string' || p.name === '') throw new RpcError('name must be the name of a tool', -32602);
      return this.callbacks.callTool(p.name, asObject(p.arguments), signal);
    },
    'resources/read': async (p: JsonObject, signal: AbortSignal) => {
      if (typeof p.uri !== 'string' || p.uri === '') throw new RpcError('uri must be the address of a resource', -32602);
      return this.callbacks.readResource(p.uri, signal);
    },
    'ui/open-link': async (p: JsonObject, signal: AbortSignal) => {
      const url = safeWebUrl(p.url);
      if (!url) throw new RpcError('url must be an http or https address', -32602);
      return (await this.callbacks.openLink(url, signal)) ? {} : { isError: true };
    },
    'ui/message': async (p: JsonObject, signal: AbortSignal) => {
      if (!this.callbacks.sendMessage) throw new RpcError('there is no chat here');
      const text = contentText(p.content);
      if (p.role !== 'user' || !text) throw new RpcError('send a message of the role user with text', -32602);
      return (await this.callbacks.sendMessage(text, signal)) ? {} : { isError: true };
    },
  }));
}

/** maxMessage bounds the text of a message that an app sends to the chat. */
const maxMessage = 20_000;

function contentText(content: unknown): string {
  const blocks = Array.isArray(content) ? content : [content];
  const text = blocks.map((b) => (asObject(b).type === 'text' ? String(asObject(b).text ?? '') : '')).filter(Boolean).join('\n\n');
  return text.length > maxMessage ? '' : text.trim();
}

/** safeWebUrl returns an http or https URL that may be opened, or ''. */
export function safeWebUrl(url: unknown): string {
  try {
    const u = new URL(String(url));
    return (u.protocol === 'https:' || u.protocol === 'http:') && u.href.length <= 8192 ? u.href : '';
  } catch {
    return '';
  }
}
