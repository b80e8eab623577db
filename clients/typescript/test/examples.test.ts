/**
 * Runs every example like a user: with the provider's real library, the real
 * gateway, and a scripted model in place of the provider.
 */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import type { AddressInfo, Server } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";

import { root, startGateway, startModel, stopAll } from "./programs.js";

const packages = join(root, "e2e", "node_modules");
const node = join(packages, ".bin", "node"); // openai's library requires Node 22
const needs = ["openai", "@anthropic-ai/sdk", "@google/genai", "ollama", "@aws-sdk/client-bedrock-runtime"];
const missing = [node, ...needs.map((name) => join(packages, name))].filter((path) => !existsSync(path));

const script = {
  rules: [
    { when: { user: "19 + 23", results: 0 }, reply: { calls: [{ tool: "junctor:calculate", args: { expression: "19+23" } }] } },
    { when: { user: "19 + 23", results: 1 }, reply: { text: "The sum is {{result}}." } },
  ],
};

describe("the examples", { skip: missing.length > 0 && !process.env["CI"] ? `${missing[0]} is missing; run make setup` : false }, () => {
  const folder = mkdtempSync(join(tmpdir(), "junctor-examples-"));
  const servers: Server[] = [];
  let env: Record<string, string>;

  before(async () => {
    assert.deepEqual(missing, [], "run make setup");
    cpSync(join(root, "examples", "providers"), folder, { recursive: true, filter: (path) => !path.includes("node_modules") });
    for (const name of needs) link(join(packages, name), join(folder, "node_modules", name));
    link(join(root, "clients", "typescript"), join(folder, "node_modules", "junctor-client"));
    const model = await startModel(script);
    env = {
      PATH: process.env["PATH"] ?? "",
      HOME: folder,
      JUNCTOR_URL: await startGateway(),
      MODEL: "scripted",
      OPENAI_API_KEY: "k",
      OPENAI_BASE_URL: `${model}/v1`,
      XAI_API_KEY: "k",
      XAI_BASE_URL: `${model}/v1`,
      ANTHROPIC_API_KEY: "k",
      ANTHROPIC_BASE_URL: model,
      GEMINI_API_KEY: "k",
      GOOGLE_GEMINI_BASE_URL: model,
      OLLAMA_HOST: await listen(servers, createServer(ollama)),
      AWS_ENDPOINT_URL_BEDROCK_RUNTIME: await listen(servers, createHttp2Server(bedrock)),
      AWS_REGION: "eu-central-1",
      AWS_ACCESS_KEY_ID: "a",
      AWS_SECRET_ACCESS_KEY: "s",
    };
  });
  after(async () => {
    for (const server of servers) server.close();
    await stopAll();
    rmSync(folder, { recursive: true, force: true });
  });

  const examples = readdirSync(join(root, "examples", "providers")).filter((file) => /\.(mjs|py)$/.test(file) && file !== "gateway.mjs");
  for (const example of examples) {
    it(example, async () => {
      const path = example.endsWith(".py") ? join(root, "examples", "providers", example) : join(folder, example);
      const program = example.endsWith(".py") ? "python3" : node;
      const { stdout } = await promisify(execFile)(program, [path], { env, cwd: folder, timeout: 120_000 });
      // Gemini accepts a value: it gets the structured content, which contains the text.
      const result = example.startsWith("gemini.") ? '{"result":"42","exact":true}' : "42";
      assert.equal(stdout.trim(), `The sum is ${result}.`);
    });
  }
  it("exist for each provider", () => {
    for (const provider of ["gemini", "openai", "openai-responses", "xai", "anthropic", "ollama", "bedrock"]) {
      assert.ok(examples.includes(`${provider}.mjs`), provider);
    }
  });
});

function link(target: string, path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(target, path);
}

async function listen(servers: Server[], server: Server): Promise<string> {
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  servers.push(server);
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function read(stream: AsyncIterable<Buffer>): Promise<any> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString() || "{}");
}

/** Stands in for Ollama, whose API the scripted model does not support. */
async function ollama(req: any, res: any): Promise<void> {
  const { messages, tools } = await read(req);
  const last = messages.at(-1);
  const name: string = tools.find((t: any) => t.function.name.endsWith("calculate")).function.name;
  const message =
    last.role === "tool"
      ? { role: "assistant", content: last.tool_name === name ? `The sum is ${last.content}.` : `wrong tool ${last.tool_name}` }
      : { role: "assistant", content: "", tool_calls: [{ function: { name, arguments: { expression: "19+23" } } }] };
  res.writeHead(200, { "content-type": "application/json" });
  res.end(JSON.stringify({ model: "scripted", created_at: new Date().toISOString(), message, done: true }));
}

/** Stands in for Bedrock. */
async function bedrock(req: any, res: any): Promise<void> {
  const { messages, toolConfig } = await read(req);
  const result = messages.at(-1).content[0].toolResult;
  const name: string = toolConfig.tools.find((t: any) => t.toolSpec.name.endsWith("calculate")).toolSpec.name;
  const content = result
    ? [{ text: `The sum is ${result.content[0].text}${result.status === "success" ? "." : "!"}` }]
    : [{ toolUse: { toolUseId: "tooluse_1", name, input: { expression: "19+23" } } }];
  res.writeHead(200, { "content-type": "application/json" });
  res.end(
    JSON.stringify({
      output: { message: { role: "assistant", content } },
      stopReason: result ? "end_turn" : "tool_use",
      usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
      metrics: { latencyMs: 1 },
    }),
  );
}
