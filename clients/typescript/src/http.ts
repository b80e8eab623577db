/** Requests with timeouts and retries. */

import { GatewayConnectionError, GatewayError, GatewayTimeout, errorFor } from "./errors.js";

/** A wait that the gateway asks for is honoured up to this many seconds. */
const maxWait = 30;

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
    return this.retried(method, signal, async () => {
      const [response, done] = await this.once(method, path, query, body, "application/json", signal);
      try {
        const text = await response.text().catch((e: unknown) => {
          throw this.unreachable(e, signal);
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
    const response = await this.retried("GET", signal, async () => {
      const [response, done] = await this.once("GET", path, query, undefined, "text/event-stream", signal);
      done(); // a stream has no end to wait for
      return response;
    });
    return events(response);
  }

  /**
   * What only reads is tried again after any transient failure. What runs
   * a tool is tried again only when the tool has certainly not run.
   */
  private async retried<T>(method: string, signal: AbortSignal | undefined, attempt: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await attempt();
      } catch (e) {
        if (!(e instanceof GatewayError) || tries > this.options.retries || !passes(e, method === "GET")) throw e;
        await this.sleep(wait(e, tries), signal);
        signal?.throwIfAborted();
      }
    }
  }

  /** Waits before a stream that was lost that many times is opened again. */
  pause(lost: number, signal: AbortSignal): Promise<void> {
    return this.sleep(lost === 0 ? 0 : Math.min(250 * 2 ** (lost - 1), 5000), signal);
  }

  /** Waits, but not beyond the end of the signal. */
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

  private async once(
    method: string,
    path: string,
    query: Query | undefined,
    body: unknown,
    accept: string,
    signal: AbortSignal | undefined,
  ): Promise<[Response, () => void]> {
    const payload = body === undefined ? undefined : encode(body);
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(new GatewayTimeout(`${this.url} did not answer in time; raise timeoutMs for slow tools`)), this.options.timeoutMs);
    const done = () => clearTimeout(timer);
    const headers: Record<string, string> = { ...this.options.headers, accept };
    if (body !== undefined) headers["content-type"] = "application/json";
    let response: Response;
    try {
      response = await this.options.fetch(this.url + path + queryString(query), {
        method,
        headers,
        ...(payload !== undefined && { body: payload }),
        signal: signal ? AbortSignal.any([signal, limit.signal]) : limit.signal,
      });
    } catch (e) {
      done();
      throw this.unreachable(e, signal);
    }
    if (response.ok) return [response, done];
    const failure: unknown = await response.json().catch(() => undefined);
    done();
    throw errorFor(response.status, failure, response.headers.get("retry-after"));
  }

  private unreachable(e: unknown, signal: AbortSignal | undefined): unknown {
    if (e instanceof GatewayError || signal?.aborted) return e;
    const cause = (e as { cause?: { code?: string; message?: string } }).cause;
    const refused = cause?.code === "ECONNREFUSED" || cause?.code === "ENOTFOUND";
    return new GatewayConnectionError(
      `cannot reach the gateway at ${this.url}: ${cause?.message || cause?.code || (e as Error).message}; is junctor serve running there?`,
      { cause: e, ...(refused && { code: "REFUSED" }) },
    );
  }
}

/** encode writes JSON; what JSON has no form for is the caller's mistake, not the gateway's. */
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

/** Whether trying again makes sense and does no harm. */
function passes(e: GatewayError, safe: boolean): boolean {
  if (e instanceof GatewayConnectionError) return safe || e.code === "REFUSED";
  if (e.status === 429 || e.code === "CIRCUIT_OPEN") return (e.retryAfter ?? 0) <= maxWait;
  return safe && (e.status === 502 || e.status === 503 || e.status === 504);
}

function wait(e: GatewayError, tries: number): number {
  if (e.retryAfter !== undefined) return Math.min(e.retryAfter, maxWait) * 1000;
  return Math.min(200 * 2 ** (tries - 1), 5000) * (0.5 + Math.random());
}

async function* events(response: Response): AsyncGenerator<{ event: string; data: any }> {
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
