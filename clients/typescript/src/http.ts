/** Requests with timeouts and retries. */

import { GatewayConnectionError, GatewayError, GatewayTimeout, errorFor } from "./errors.js";

/** The longest Retry-After that is honoured, in seconds. */
const maxRetryAfter = 30;

export interface TransportOptions {
  headers: Record<string, string>;
  timeoutMs: number;
  retries: number;
  fetch: typeof fetch;
  sleep: (ms: number) => Promise<void>;
}

export type Query = Record<string, string | number | boolean | readonly string[] | undefined>;

export class Transport {
  readonly url: string;

  constructor(
    url: string,
    private readonly options: TransportOptions,
  ) {
    if (!/^https?:\/\/[^/]/.test(url)) {
      throw new TypeError(`${JSON.stringify(url)} is not the URL of a gateway, such as http://127.0.0.1:8787`);
    }
    this.url = url.replace(/\/+$/, "");
  }

  async json<T>(method: "GET" | "POST", path: string, query?: Query, body?: unknown, signal?: AbortSignal): Promise<T> {
    return this.withRetries(method, signal, async () => {
      const [response, done] = await this.sendOnce(method, path, query, body, "application/json", signal);
      try {
        const text = await response.text().catch((e: unknown) => {
          throw this.connectionError(e, signal);
        });
        try {
          return JSON.parse(text) as T;
        } catch (cause) {
          throw new GatewayError(`the answer of ${this.url} is not JSON; is it a Junctor gateway?`, { cause });
        }
      } finally {
        done();
      }
    });
  }

  /** Opens a stream of server-sent events. */
  async stream(path: string, query: Query, signal: AbortSignal): Promise<AsyncGenerator<{ event: string; data: any }>> {
    const response = await this.withRetries("GET", signal, async () => {
      const [response, done] = await this.sendOnce("GET", path, query, undefined, "text/event-stream", signal);
      done(); // the timeout does not apply to a stream
      return response;
    });
    return readEvents(response);
  }

  /**
   * Reads are retried after any transient failure. Tool calls are retried
   * only if the tool has certainly not run.
   */
  private async withRetries<T>(method: string, signal: AbortSignal | undefined, attempt: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await attempt();
      } catch (e) {
        if (!(e instanceof GatewayError) || tries > this.options.retries || !isRetryable(e, method === "GET")) throw e;
        await this.sleep(retryDelay(e, tries), signal);
        signal?.throwIfAborted();
      }
    }
  }

  /** Waits before a stream is opened again after consecutive connection losses. */
  waitToReconnect(losses: number, signal: AbortSignal): Promise<void> {
    return this.sleep(losses === 0 ? 0 : Math.min(250 * 2 ** (losses - 1), 5000), signal);
  }

  /** Waits until the time is over or the signal is aborted. */
  private async sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
    let wake = () => {};
    const aborted = new Promise<void>((resolve) => (wake = resolve));
    signal?.addEventListener("abort", wake);
    try {
      if (!signal?.aborted) await Promise.race([this.options.sleep(ms), aborted]);
    } finally {
      signal?.removeEventListener("abort", wake);
    }
  }

  private async sendOnce(
    method: string,
    path: string,
    query: Query | undefined,
    body: unknown,
    accept: string,
    signal: AbortSignal | undefined,
  ): Promise<[Response, () => void]> {
    const payload = body === undefined ? undefined : encode(body);
    const timeout = new AbortController();
    const timer = setTimeout(() => timeout.abort(new GatewayTimeout(`${this.url} did not answer in time; raise timeoutMs for slow tools`)), this.options.timeoutMs);
    const done = () => clearTimeout(timer);
    const headers: Record<string, string> = { ...this.options.headers, accept };
    if (body !== undefined) headers["content-type"] = "application/json";
    let response: Response;
    try {
      response = await this.options.fetch(this.url + path + queryString(query), {
        method,
        headers,
        ...(payload !== undefined && { body: payload }),
        signal: signal ? AbortSignal.any([signal, timeout.signal]) : timeout.signal,
      });
    } catch (e) {
      done();
      throw this.connectionError(e, signal);
    }
    if (response.ok) return [response, done];
    const errorBody: unknown = await response.json().catch(() => undefined);
    done();
    throw errorFor(response.status, errorBody, response.headers.get("retry-after"));
  }

  private connectionError(e: unknown, signal: AbortSignal | undefined): unknown {
    if (e instanceof GatewayError || signal?.aborted) return e;
    const cause = (e as { cause?: { code?: string; message?: string } }).cause;
    const refused = cause?.code === "ECONNREFUSED" || cause?.code === "ENOTFOUND";
    return new GatewayConnectionError(
      `cannot reach the gateway at ${this.url}: ${cause?.message || cause?.code || (e as Error).message}; is junctor serve running there?`,
      { cause: e, ...(refused && { code: "REFUSED" }) },
    );
  }
}

/** Encodes a body as JSON. A value that JSON cannot represent is an error of the caller, not of the gateway. */
function encode(body: unknown): string {
  try {
    return JSON.stringify(body);
  } catch (e) {
    const hint = e instanceof TypeError && /bigint/i.test(e.message) ? "; pass a BigInt as a string, or as a number if it is a safe integer" : "";
    throw new TypeError(`the request cannot be written as JSON: ${(e as Error).message}${hint}`, { cause: e });
  }
}

function queryString(query: Query | undefined): string {
  const pairs = new URLSearchParams();
  for (const [key, value] of Object.entries(query ?? {})) {
    if (value !== undefined) pairs.set(key, Array.isArray(value) ? value.join(",") : String(value));
  }
  return pairs.size > 0 ? `?${pairs}` : "";
}

/** Reports whether a retry is useful and safe; idempotent is whether the request only reads. */
function isRetryable(e: GatewayError, idempotent: boolean): boolean {
  if (e instanceof GatewayConnectionError) return idempotent || e.code === "REFUSED";
  if (e.status === 429 || e.code === "CIRCUIT_OPEN") return (e.retryAfter ?? 0) <= maxRetryAfter;
  return idempotent && (e.status === 502 || e.status === 503 || e.status === 504);
}

function retryDelay(e: GatewayError, tries: number): number {
  if (e.retryAfter !== undefined) return Math.min(e.retryAfter, maxRetryAfter) * 1000;
  return Math.min(200 * 2 ** (tries - 1), 5000) * (0.5 + Math.random());
}

async function* readEvents(response: Response): AsyncGenerator<{ event: string; data: any }> {
  let buffer = "";
  let event = "message";
  let data: string[] = [];
  const decoder = new TextDecoder();
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    buffer += decoder.decode(chunk, { stream: true });
    for (let end = buffer.indexOf("\n"); end >= 0; end = buffer.indexOf("\n")) {
      const line = buffer.slice(0, end).replace(/\r$/, "");
      buffer = buffer.slice(end + 1);
      if (line === "") {
        if (data.length > 0) yield { event, data: JSON.parse(data.join("\n")) };
        event = "message";
        data = [];
      } else if (line.startsWith("event:")) {
        event = line.slice(6).trim();
      } else if (line.startsWith("data:")) {
        data.push(line.slice(5).replace(/^ /, ""));
      }
    }
  }
}
