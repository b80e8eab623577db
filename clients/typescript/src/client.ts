/** The client of a Junctor gateway. */

import { GatewayConnectionError, GatewayError, errorFor } from "./errors.js";
import { Transport, type Query } from "./http.js";
import { run, type Ask, type RunOptions, type RunResult } from "./run.js";
import { withWarnings, type BedrockResult, type CallToolResult, type Health, type LogEntry, type Provider, type Results, type Tool, type Tools, type Warning } from "./types.js";

export interface ClientOptions {
  apiKey?: string;
  /** The timeout of one request; 120 000 by default. */
  timeoutMs?: number;
  /** How often a request that is safe to repeat is retried; 2 by default. */
  retries?: number;
  headers?: Record<string, string>;
  fetch?: typeof fetch;
  /** Waits between retries; for tests. */
  sleep?: (ms: number) => Promise<void>;
}

/** The filter of a list of tools. */
export interface Filter {
  server?: string | readonly string[];
  tags?: string | readonly string[];
  /** Finds tools by what they do. */
  query?: string;
  limit?: number;
  signal?: AbortSignal;
}

export interface ToolOptions extends Filter {
  detail?: "full" | "concise";
  /** Gemini only. */
  schema?: "json" | "openapi";
  /** OpenAI and xAI only. */
  strict?: boolean;
}

export interface LogFilter {
  server?: string;
  tool?: string;
  status?: "ok" | "error" | "failed";
  since?: string | Date;
  limit?: number;
  signal?: AbortSignal;
}

interface CallOptions {
  server?: string;
  signal?: AbortSignal;
}

export class GatewayClient {
  readonly #http: Transport;

  constructor(url = "http://127.0.0.1:8787", options: ClientOptions = {}) {
    const headers: Record<string, string> = { ...options.headers };
    if (options.apiKey) headers["authorization"] = `Bearer ${options.apiKey}`;
    this.#http = new Transport(url, {
      headers,
      timeoutMs: options.timeoutMs ?? 120_000,
      retries: options.retries ?? 2,
      fetch: options.fetch ?? ((...args) => fetch(...args)),
      sleep: options.sleep ?? ((ms) => new Promise((resolve) => setTimeout(resolve, ms))),
    });
  }

  get url(): string {
    return this.#http.url;
  }

  /**
   * Returns the tools as the provider's library takes them: a list for
   * OpenAI, xAI, Anthropic and Ollama; one tool with functionDeclarations for
   * Gemini; a tool configuration for Bedrock. warningsOf returns what the
   * provider's format could not express.
   */
  async getTools<P extends Provider>(provider: P, options: ToolOptions = {}): Promise<Tools[P]> {
    const { signal, ...query } = options;
    const body = await this.#http.json<{
      tools?: object[];
      function_declarations?: object[];
      toolConfig?: object;
      warnings?: Warning[];
    }>("GET", `/tools/${pathSegment(provider)}`, query, undefined, signal);
    const tools = body.toolConfig ?? (body.function_declarations && { functionDeclarations: body.function_declarations }) ?? body.tools ?? [];
    return withWarnings(tools, body.warnings ?? []) as Tools[P];
  }

  /** Returns the MCP definitions of tools, each with its server. */
  async listTools(filter: Filter = {}): Promise<Tool[]> {
    const { signal, ...query } = filter;
    return (await this.#http.json<{ tools: Tool[] }>("GET", "/tools", query, undefined, signal)).tools;
  }

  /** Finds tools by what they do, the best match first. */
  search(query: string, filter: Omit<Filter, "query"> = {}): Promise<Tool[]> {
    return this.listTools({ limit: 10, ...filter, query });
  }

  /** Returns the tools as text for a prompt, concise unless asked otherwise. */
  async context(provider: Provider, options: Filter & { detail?: "full" | "concise" } = {}): Promise<string> {
    const { signal, ...query } = options;
    return (await this.#http.json<{ context: string }>("GET", `/tools/${pathSegment(provider)}/context`, { detail: "concise", ...query }, undefined, signal)).context;
  }

  /**
   * Runs what the model called and returns what goes back to it. A single
   * call that cannot be run throws; in an array each call has its own result,
   * failures too, because a conversation needs an answer to every call.
   */
  execute<P extends Provider>(provider: P, call: readonly object[], options?: CallOptions): Promise<Results[P][]>;
  execute<P extends Provider>(provider: P, call: object, options?: CallOptions): Promise<Results[P]>;
  async execute(provider: Provider, call: object, options: CallOptions = {}): Promise<unknown> {
    const body = { provider, call, ...(options.server && { server: options.server }) };
    const result = await this.#http.json<any>("POST", "/execute", undefined, body, options.signal);
    if (provider !== "bedrock") return result;
    return Array.isArray(result) ? result.map(decodeMedia) : decodeMedia(result);
  }

  /** Runs a tool by its own name and returns its MCP result. */
  async callTool(server: string | undefined, tool: string, args: object = {}, options: { signal?: AbortSignal } = {}): Promise<CallToolResult> {
    const body = { ...(server && { server }), tool, arguments: args };
    return (await this.#http.json<{ result: CallToolResult }>("POST", "/call_tool", undefined, body, options.signal)).result;
  }

  /**
   * Drives a whole tool loop around your own client of a provider. ask calls
   * the model and returns the response as the provider's library gave it; the
   * loop ends with the first response without calls.
   */
  run<P extends Provider, R>(provider: P, ask: Ask<P, R>, messages: readonly any[], options: RunOptions<P> = {}): Promise<RunResult<R>> {
    return run(this, provider, ask, messages, options);
  }

  /** Returns the call log, newest last. */
  logs(filter: LogFilter = {}): Promise<LogEntry[]> {
    return this.#http.json("GET", "/logs", logQuery(filter), undefined, filter.signal);
  }

  /**
   * Follows the call log: records as calls are made, after the past ones that
   * since or limit ask for. It reconnects after a lost connection,
   * without a limit, and no record is omitted. Leave the loop, or abort the
   * signal, to end it.
   */
  async *followLogs(filter: LogFilter = {}): AsyncGenerator<LogEntry, void, undefined> {
    const stop = new AbortController();
    const signal = filter.signal ? AbortSignal.any([filter.signal, stop.signal]) : stop.signal;
    let query = logQuery(filter);
    let connected = false;
    try {
      for (let losses = 0; !signal.aborted; losses++) {
        try {
          for await (const { event, data } of await this.#http.stream("/logs", query, signal)) {
            connected = true;
            if (event === "call") {
              losses = 0;
              query = { ...query, since: undefined, limit: undefined, after: data.seq };
              yield data as LogEntry;
            } else if (event === "open" && query["since"] === undefined && query["limit"] === undefined) {
              query = { ...query, after: data.after };
            } else if (event === "error") {
              throw errorFor(500, data);
            }
          }
        } catch (e) {
          if (signal.aborted) return;
          if (!connected || (e instanceof GatewayError && !isUnavailable(e))) throw e;
        }
        await this.#http.waitToReconnect(losses, signal);
      }
    } finally {
      stop.abort();
    }
  }

  /** Returns the state of the gateway and its servers. */
  health(options: { signal?: AbortSignal } = {}): Promise<Health> {
    return this.#http.json("GET", "/health", undefined, undefined, options.signal);
  }

  /** Reports whether the gateway accepts requests. */
  async ready(options: { signal?: AbortSignal } = {}): Promise<boolean> {
    try {
      return (await this.#http.json<{ ok: boolean }>("GET", "/health/ready", undefined, undefined, options.signal)).ok;
    } catch (e) {
      if (e instanceof GatewayError) return false;
      throw e;
    }
  }
}

/** Reports whether the gateway is unavailable, rather than refusing the request. */
function isUnavailable(e: GatewayError): boolean {
  return e instanceof GatewayConnectionError || e.status === 502 || e.status === 503 || e.status === 504;
}

function pathSegment(provider: string): string {
  if (!/^[A-Za-z0-9_-]+$/.test(provider)) throw new TypeError(`${JSON.stringify(provider)} is not the name of a provider`);
  return provider;
}

function logQuery({ signal: _, since, ...rest }: LogFilter): Query {
  return { ...rest, since: since instanceof Date ? since.toISOString() : since };
}

/** Decodes base64 to bytes, which Bedrock's library requires in media, but not in the JSON that a tool returned. */
function decodeMedia(result: BedrockResult): BedrockResult {
  for (const block of result.toolResult.content) {
    for (const kind of ["image", "document", "video"]) {
      const source = block[kind]?.source;
      if (typeof source?.bytes === "string") source.bytes = Uint8Array.from(atob(source.bytes), (c) => c.charCodeAt(0));
    }
  }
  return result;
}
