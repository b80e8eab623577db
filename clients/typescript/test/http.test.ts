/** Timeouts, retries and errors, against a server that misbehaves. */

import assert from "node:assert/strict";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { it } from "node:test";

import {
  AuthenticationError,
  GatewayClient,
  GatewayConnectionError,
  GatewayError,
  GatewayTimeout,
  PermissionDeniedError,
  RateLimitError,
  UpstreamError,
  type ClientOptions,
} from "../src/index.js";

type Answer = "hang" | "drop" | { status?: number; headers?: Record<string, string>; body: unknown };

/** Runs a test against a server that sends the given responses in turn. */
async function stub(answers: Answer[], test: (client: (o?: ClientOptions) => GatewayClient, requests: IncomingMessage[], waits: number[]) => Promise<void>) {
  const requests: IncomingMessage[] = [];
  const waits: number[] = [];
  const server = createServer((req, res) => {
    requests.push(req);
    const answer = answers[Math.min(requests.length, answers.length) - 1]!;
    req.resume();
    if (answer === "hang") return;
    if (answer === "drop") return void req.socket.destroy();
    res.writeHead(answer.status ?? 200, answer.headers);
    res.end(typeof answer.body === "string" ? answer.body : JSON.stringify(answer.body));
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    await test((o) => new GatewayClient(url, { sleep: async (ms) => void waits.push(ms), ...o }), requests, waits);
  } finally {
    server.closeAllConnections();
    await new Promise((closed) => server.close(closed));
  }
}

const failure = (status: number, code: string, retryAfter?: string): Answer => ({
  status,
  ...(retryAfter && { headers: { "retry-after": retryAfter } }),
  body: { error: "E", message: "what to do", code, requestId: "r1", details: { a: 1 } },
});
const ok: Answer = { body: { ok: true, servers: [], result: { content: [] } } };

it("has an error for each kind", async () => {
  for (const [status, code, kind] of [
    [401, "UNAUTHENTICATED", AuthenticationError],
    [403, "TOOL_DISABLED", PermissionDeniedError],
    [429, "RATE_LIMITED", RateLimitError],
    [502, "UPSTREAM_ERROR", UpstreamError],
    [500, "INTERNAL", GatewayError],
  ] as const) {
    await stub([failure(status, code, "7")], async (client) => {
      await assert.rejects(client({ retries: 0 }).health(), (e: unknown) => {
        assert.ok(e instanceof kind);
        assert.deepEqual([e.status, e.code, e.message, e.requestId, e.details, e.retryAfter], [status, code, "what to do", "r1", { a: 1 }, 7]);
        return true;
      });
    });
  }
});

it("reports a response that is not from a gateway", async () => {
  await stub([{ status: 500, headers: { "retry-after": "soon" }, body: "<html>" }], (client) =>
    assert.rejects(client({ retries: 0 }).health(), /the gateway answered with status 500/));
  await stub([{ body: "<html>" }], (client) => assert.rejects(client().health(), /is it a Junctor gateway/));
});

it("retries reads", async () => {
  await stub([failure(503, "UNAVAILABLE"), "drop", ok], async (client, requests) => {
    assert.equal((await client().health()).ok, true);
    assert.equal(requests.length, 3);
  });
  await stub([failure(504, "TIMEOUT")], async (client, requests) => {
    await assert.rejects(client().health(), UpstreamError);
    assert.equal(requests.length, 3);
  });
});

it("retries calls only if they have not run", async () => {
  for (const [code, status, after] of [["RATE_LIMITED", 429, "3"], ["CIRCUIT_OPEN", 503, "2"]] as const) {
    await stub([failure(status, code, after), ok], async (client, requests, waits) => {
      await client().callTool("s", "t");
      assert.equal(requests.length, 2);
      assert.deepEqual(waits, [Number(after) * 1000]);
    });
  }
  for (const answer of [failure(502, "UPSTREAM_ERROR"), failure(504, "TIMEOUT"), "drop", failure(429, "RATE_LIMITED", "999")] as Answer[]) {
    await stub([answer, ok], async (client, requests) => {
      await assert.rejects(client().callTool("s", "t"), GatewayError);
      assert.equal(requests.length, 1);
    });
  }
});

it("times out, and can be aborted", async () => {
  await stub(["hang"], (client) => assert.rejects(client({ timeoutMs: 100, retries: 0 }).callTool("s", "t"), GatewayTimeout));
  await stub(["hang"], async (client) => {
    const stop = new AbortController();
    const call = client().callTool("s", "t", {}, { signal: stop.signal });
    stop.abort();
    await assert.rejects(call, { name: "AbortError" });
  });
});

it("reports an unreachable gateway", async () => {
  let gone: GatewayClient | undefined;
  await stub([ok], async (client) => {
    gone = client({ retries: 1 });
  });
  await assert.rejects(gone!.health(), (e: unknown) => e instanceof GatewayConnectionError && /is junctor serve running/.test(e.message));
  assert.equal(await gone!.ready(), false);
  assert.throws(() => new GatewayClient("127.0.0.1:8787"), TypeError);
});

it("sends headers and queries", async () => {
  await stub([{ body: { tools: [] } }], async (client, requests) => {
    await client({ apiKey: "secret", headers: { "x-request-id": "mine" } }).getTools("openai", { server: ["a", "b"], strict: true, limit: 3 });
    assert.equal(requests[0]?.url, "/tools/openai?server=a%2Cb&strict=true&limit=3");
    assert.equal(requests[0]?.headers.authorization, "Bearer secret");
    assert.equal(requests[0]?.headers["x-request-id"], "mine");
  });
});

it("reconnects when following the log", async () => {
  const stream = (...events: [string, object][]): Answer => ({
    headers: { "content-type": "text/event-stream" },
    body: events.map(([name, data]) => `event: ${name}\r\ndata: ${JSON.stringify(data)}\r\n\r\n`).join(""),
  });
  await stub(
    [
      stream(["open", { after: 4 }], ["call", { seq: 5 }]),
      stream(["open", { after: 5 }], ["call", { seq: 6 }]),
      stream(["open", { after: 6 }], ["error", { message: "gone", code: "INTERNAL" }]),
    ],
    async (client, requests) => {
      const seen: number[] = [];
      await assert.rejects(async () => {
        for await (const entry of client().followLogs()) seen.push(entry.seq);
      }, /gone/);
      assert.deepEqual(seen, [5, 6]);
      assert.deepEqual(requests.map((r) => r.url), ["/logs", "/logs?after=5", "/logs?after=6"]);
    },
  );
});

it("keeps following the log during an outage", async () => {
  const stream = (...events: [string, object][]): Answer => ({
    headers: { "content-type": "text/event-stream" },
    body: events.map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`).join(""),
  });
  await stub(
    [
      stream(["open", { after: 4 }]),
      { status: 503, body: { message: "not yet" } },
      stream(["open", { after: 4 }], ["call", { seq: 5 }]),
      { status: 401, body: { message: "the key was revoked" } },
    ],
    async (client, requests) => {
      const seen: number[] = [];
      await assert.rejects(async () => {
        for await (const entry of client({ retries: 0 }).followLogs()) seen.push(entry.seq);
      }, AuthenticationError);
      assert.deepEqual(seen, [5]);
      assert.deepEqual(requests.map((r) => r.url), ["/logs", "/logs?after=4", "/logs?after=4", "/logs?after=5"]);
    },
  );
});

it("stops waiting for a retry when it is aborted", async () => {
  await stub([{ status: 503, headers: { "retry-after": "30" }, body: {} }], async (client, requests) => {
    const stop = new AbortController();
    const sleep = () => new Promise<void>(() => setImmediate(() => stop.abort(new Error("enough")))); // never ends by itself
    await assert.rejects(client({ sleep }).health({ signal: stop.signal }), /enough/);
    await assert.rejects(client({ sleep }).ready({ signal: stop.signal }), /enough/);
    assert.equal(requests.length, 1);
  });
});

it("converts blobs to bytes for bedrock", async () => {
  const image = { image: { format: "png", source: { bytes: "AAE=" } } };
  const own = { json: { bytes: "100", image: { source: { bytes: "1024" } } } };
  const answer = { toolResult: { toolUseId: "t", status: "success", content: [image, own] } };
  const call = { toolUseId: "t", name: "n", input: {} };
  await stub([{ body: answer }, { body: [answer, answer] }], async (client) => {
    for (const result of [await client().execute("bedrock", call), ...(await client().execute("bedrock", [call, call]))]) {
      assert.deepEqual(result.toolResult.content[0].image.source.bytes, Uint8Array.from([0, 1]));
      assert.deepEqual(result.toolResult.content[1], own);
    }
  });
});

it("reports an argument that cannot be encoded as JSON", async () => {
  await stub([ok], async (client, requests) => {
    await assert.rejects(client().callTool("s", "t", { n: 1n }), (e: unknown) => e instanceof TypeError && /BigInt/.test(e.message) && !/reach/.test(e.message));
    assert.equal(requests.length, 0);
  });
});
