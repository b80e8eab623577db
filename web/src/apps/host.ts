// The host's side of MCP Apps (io.modelcontextprotocol/ui, 2026-01-26): JSON-RPC
// with the app in a frame. It knows neither the DOM nor the gateway.

/** Limits of one app. An app that exceeds the rate is stopped. */
export const limits = { messagesPerSecond: 200, pending: 16, height: 800 };

const protocolVersions = ['2026-01-26', '2025-11-21'];

/** Links are what an app reaches through its host. */
export interface Links {
  /** Sends a message to the app. */
  post: (message: unknown) => void;
  /** Calls a tool of the app's server. */
  callTool: (name: string, args: Record<string, unknown>, signal: AbortSignal) => Promise<unknown>;
  /** Reads a resource of the app's server. */
  readResource: (uri: string, signal: AbortSignal) => Promise<unknown>;
  /** Asks the user whether to open a link. */
  openLink: (url: string, signal: AbortSignal) => Promise<boolean>;
  /** Asks the user whether to send a message to the chat; not set where there is none. */
  say?: (text: string, signal: AbortSignal) => Promise<boolean>;
  /** The app wants this height, in pixels. */
  resize: (height: number) => void;
  /** The app broke a rule and must be removed. */
  stop: (reason: string) => void;
}

/** Refusal is an error for the app. */
export class Refusal extends Error {
  constructor(
    message: string,
    readonly code = -32000,
  ) {
    super(message);
  }
}

type Json = Record<string, unknown>;
const object = (v: unknown): Json => (typeof v === 'object' && v !== null && !Array.isArray(v) ? (v as Json) : {});

/** Outcome is how the call of the tool ended, undefined while it runs. */
export type Outcome = { result: unknown } | { cancelled: string } | undefined;

export class AppHost {
  private state: 'new' | 'initializing' | 'ready' | 'closed' = 'new';
  private pending = new Map<string | number, AbortController>();
  private second = 0;
  private received = 0;
  private input: Json = {};
  private outcome: Outcome;
  private delivered = false;
  private ended = false;
  private tornDown?: () => void;

  constructor(
    private links: Links,
    private context: Json,
    private capabilities: Json,
    private now: () => number = () => performance.now(),
  ) {}

  /** count counts a message of any kind, and reports whether the app is still within its rate. */
  count(): boolean {
    const second = Math.floor(this.now() / 1000);
    if (second !== this.second) {
      this.second = second;
      this.received = 0;
    }
    if (++this.received <= limits.messagesPerSecond) return true;
    if (this.state !== 'closed') {
      this.close();
      this.links.stop('It sent too many messages.');
    }
    return false;
  }

  /** receive handles a message of the app, as text. */
  receive(text: string): void {
    if (this.state === 'closed') return;
    let m: Json;
    try {
      m = object(JSON.parse(text));
    } catch {
      return;
    }
    const id = m.id;
    const known = typeof id === 'string' || typeof id === 'number';
    if (typeof m.method !== 'string') {
      if (id === 'teardown') this.tornDown?.();
      return;
    }
    if (!known) return this.notified(m.method, object(m.params));
    this.request(id, m.method, object(m.params)).then(
      (result) => this.send({ id, result }),
      (e: unknown) => this.send({ id, error: { code: e instanceof Refusal ? e.code : -32000, message: e instanceof Error ? e.message : String(e) } }),
    );
  }

  /** tool tells the app the arguments of the call and, when it has ended, how. */
  tool(input: Json, outcome: Outcome): void {
    this.input = input;
    this.outcome = outcome;
    if (this.state === 'ready') this.deliver();
  }

  /** change sends what has changed of the host's context. */
  change(context: Json): void {
    this.context = { ...this.context, ...context };
    if (this.state === 'ready') this.notify('ui/notifications/host-context-changed', context);
  }

  /** tearDown lets the app end its work, for a moment. */
  async tearDown(reason: string, wait = 500): Promise<void> {
    if (this.state === 'ready') {
      await new Promise<void>((done) => {
        this.tornDown = done;
        setTimeout(done, wait);
        this.send({ id: 'teardown', method: 'ui/resource-teardown', params: { reason } });
      });
    }
    this.close();
  }

  /** close ends all that the app has asked for. */
  close(): void {
    this.state = 'closed';
    for (const a of this.pending.values()) a.abort();
    this.pending.clear();
  }

  private send(message: Json): void {
    if (this.state !== 'closed') this.links.post({ jsonrpc: '2.0', ...message });
  }

  private notify(method: string, params: unknown): void {
    this.send({ method, params });
  }

  private deliver(): void {
    if (!this.delivered) this.notify('ui/notifications/tool-input', { arguments: this.input });
    this.delivered = true;
    const o = this.outcome;
    if (!o || this.ended) return;
    this.ended = true;
    if ('cancelled' in o) this.notify('ui/notifications/tool-cancelled', { reason: o.cancelled });
    else this.notify('ui/notifications/tool-result', o.result);
  }

  private notified(method: string, params: Json): void {
    switch (method) {
      case 'ui/notifications/initialized':
        if (this.state !== 'initializing') return;
        this.state = 'ready';
        return this.deliver();
      case 'ui/notifications/size-changed': {
        const height = Number(params.height);
        if (Number.isFinite(height) && height >= 0) this.links.resize(Math.min(Math.ceil(height), limits.height));
        return;
      }
      case 'notifications/cancelled':
        this.pending.get(params.requestId as string | number)?.abort();
    }
  }

  private async request(id: string | number, method: string, params: Json): Promise<unknown> {
    if (method === 'ping') return {};
    if (method === 'ui/initialize') {
      if (this.state === 'new') this.state = 'initializing';
      const wanted = String(params.protocolVersion);
      return { protocolVersion: protocolVersions.includes(wanted) ? wanted : protocolVersions[0], hostInfo: { name: 'Junctor', version: '1' }, hostCapabilities: this.capabilities, hostContext: this.context };
    }
    if (this.state === 'new') throw new Refusal('ui/initialize must come first', -32600);
    if (method === 'ui/request-display-mode') return { mode: 'inline' };
    const work = this.works.get(method);
    if (!work) throw new Refusal(`the host does not support ${method.slice(0, 100)}`, -32601);
    if (this.pending.has(id)) throw new Refusal('the id of the request is in use', -32600);
    if (this.pending.size >= limits.pending) throw new Refusal(`${limits.pending} requests are pending; wait for one of them`);
    const abort = new AbortController();
    this.pending.set(id, abort);
    try {
      return await work(params, abort.signal);
    } finally {
      if (this.pending.get(id) === abort) this.pending.delete(id);
    }
  }

  private works = new Map<string, (params: Json, signal: AbortSignal) => Promise<unknown>>(Object.entries({
    'tools/call': async (p: Json, signal: AbortSignal) => {
      if (typeof p.name !== 'string' || p.name === '') throw new Refusal('name must be the name of a tool', -32602);
      return this.links.callTool(p.name, object(p.arguments), signal);
    },
    'resources/read': async (p: Json, signal: AbortSignal) => {
      if (typeof p.uri !== 'string' || p.uri === '') throw new Refusal('uri must be the address of a resource', -32602);
      return this.links.readResource(p.uri, signal);
    },
    'ui/open-link': async (p: Json, signal: AbortSignal) => {
      const url = webLink(p.url);
      if (!url) throw new Refusal('url must be an http or https address', -32602);
      return (await this.links.openLink(url, signal)) ? {} : { isError: true };
    },
    'ui/message': async (p: Json, signal: AbortSignal) => {
      if (!this.links.say) throw new Refusal('there is no chat here');
      const text = textOf(p.content);
      if (p.role !== 'user' || !text) throw new Refusal('send a message of the role user with text', -32602);
      return (await this.links.say(text, signal)) ? {} : { isError: true };
    },
  }));
}

/** maxMessage bounds the text that an app puts into the chat. */
const maxMessage = 20_000;

function textOf(content: unknown): string {
  const blocks = Array.isArray(content) ? content : [content];
  const text = blocks.map((b) => (object(b).type === 'text' ? String(object(b).text ?? '') : '')).filter(Boolean).join('\n\n');
  return text.length > maxMessage ? '' : text.trim();
}

/** webLink returns an address that may be opened, or ''. */
export function webLink(url: unknown): string {
  try {
    const u = new URL(String(url));
    return (u.protocol === 'https:' || u.protocol === 'http:') && u.href.length <= 8192 ? u.href : '';
  } catch {
    return '';
  }
}
