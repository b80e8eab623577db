/** The client against the real gateway, and the loop around a scripted model
 * that checks a conversation as strictly as the provider does. */

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";

import { GatewayClient, InvalidRequestError, NotFoundError, RunLimitError, warningsOf, type Provider } from "../src/index.js";
import { startGateway, startModel, stopAll } from "./programs.js";

const script = {
  rules: [
    {
      when: { user: "add", results: 0 },
      reply: {
        text: "Let me see.",
        calls: [
          { tool: "junctor:calculate", args: { expression: "19+23" } },
          { tool: "junctor:text", args: { operation: "upper", text: "sum" } },
        ],
      },
    },
    { when: { user: "add", results: 2 }, reply: { text: "It is {{results}}." } },
    { when: { user: "loop" }, reply: { calls: [{ tool: "junctor:time" }] } },
    { when: { user: "wrong", results: 0 }, reply: { calls: [{ tool: "junctor:calculate", args: { expr: "1" } }] } },
    { when: { user: "wrong", results: 1 }, reply: { text: "I see: {{result}}" } },
  ],
};

describe("the gateway", () => {
  let gateway: GatewayClient;
  let model: string;
  before(async () => {
    gateway = new GatewayClient(await startGateway());
    model = await startModel(script);
  });
  after(stopAll);

  async function post(path: string, body: object, headers: Record<string, string>): Promise<any> {
    const response = await fetch(model + path, { method: "POST", headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(body) });
    assert.equal(response.status, 200, await response.clone().text());
    return response.json();
  }
  const asks = {
    openai: (messages: any[], tools: object) => post("/v1/chat/completions", { model: "m", messages, tools }, { authorization: "Bearer k" }),
    "openai-responses": (input: any[], tools: object) => post("/v1/responses", { model: "m", input, tools }, { authorization: "Bearer k" }),
    anthropic: (messages: any[], tools: object) =>
      post("/v1/messages", { model: "m", max_tokens: 99, messages, tools }, { "x-api-key": "k", "anthropic-version": "2023-06-01" }),
    gemini: (contents: any[], tools: object) => post("/v1beta/models/gemini-3:generateContent", { contents, tools: [tools] }, { "x-goog-api-key": "k" }),
  };

  it("returns tools in the format of each provider's library", async () => {
    for (const provider of ["openai", "xai", "ollama"] as const) {
      assert.ok((await gateway.getTools(provider)).some((t) => t.function.name === "junctor__calculate"));
    }
    assert.ok((await gateway.getTools("anthropic", { server: "junctor" })).every((t) => t.input_schema.type === "object"));
    assert.ok((await gateway.getTools("openai-responses")).every((t) => t.strict === false));
    assert.ok((await gateway.getTools("gemini")).functionDeclarations[0]?.parametersJsonSchema);
    const older = await gateway.getTools("gemini", { schema: "openapi" });
    assert.equal(older.functionDeclarations[0]?.parameters.type, "OBJECT");
    assert.equal(warningsOf(older)[0]?.code, "lowered");
    assert.ok(!JSON.stringify(older).includes("warnings"));
    assert.ok((await gateway.getTools("bedrock")).tools[0]?.toolSpec);
    assert.deepEqual(warningsOf([]), []);
  });

  it("filters tools", async () => {
    const [tool] = await gateway.getTools("openai", { query: "arithmetic", limit: 1, detail: "concise", strict: true });
    assert.equal(tool?.function.name, "junctor__calculate");
    assert.equal(tool?.function.strict, true);
    assert.deepEqual(await gateway.getTools("openai", { tags: ["none", "such"] }), []);
    assert.equal((await gateway.search("evaluate an expression"))[0]?.name, "calculate");
    assert.ok((await gateway.listTools({ server: "junctor" })).every((t) => t.server === "junctor"));
    assert.match(await gateway.context("gemini"), /junctor__calculate\(expression\*\)/);
  });

  it("executes calls in every provider format", async () => {
    const args = { expression: "1+1" };
    assert.deepEqual(await gateway.execute("openai", { id: "c", type: "function", function: { name: "junctor__calculate", arguments: JSON.stringify(args) } }), {
      role: "tool",
      tool_call_id: "c",
      content: "2",
    });
    const gemini = await gateway.execute("gemini", { name: "calculate", args }, { server: "junctor" });
    assert.deepEqual(gemini.functionResponse.response, { output: { result: "2", exact: true } });
    const anthropic = await gateway.execute("anthropic", [
      { type: "tool_use", id: "1", name: "junctor__calculate", input: args },
      { type: "tool_use", id: "2", name: "junctor__nothing", input: {} },
    ]);
    assert.deepEqual(
      anthropic.map((r) => [r.tool_use_id, r.is_error ?? false]),
      [["1", false], ["2", true]],
    );
    const bedrock = await gateway.execute("bedrock", { toolUseId: "b", name: "junctor__calculate", input: args });
    assert.equal(bedrock.toolResult.status, "success");
  });

  it("reports failed calls", async () => {
    await assert.rejects(gateway.execute("gemini", { name: "junctor__calculatr", args: {} }), (e: unknown) => {
      assert.ok(e instanceof NotFoundError);
      assert.equal(e.code, "TOOL_NOT_FOUND");
      assert.match(JSON.stringify(e.details), /junctor:calculate/);
      assert.ok(e.requestId);
      return true;
    });
    await assert.rejects(gateway.callTool("junctor", "calculate", { expression: 7 }), InvalidRequestError);
    await assert.rejects(gateway.getTools("acme" as Provider), NotFoundError);
    await assert.rejects(gateway.getTools("../x" as Provider), TypeError);
  });

  it("calls tools by name", async () => {
    const result = await gateway.callTool("junctor", "text", { operation: "upper", text: "é" });
    assert.equal(result.content?.[0].text, "É");
    assert.equal((await gateway.callTool(undefined, "calculate", { expression: "1/" })).isError, true);
  });

  it("reads and follows the log", async () => {
    const since = new Date(Date.now() - 5000);
    await gateway.callTool("junctor", "calculate", { expression: "40+2" });
    const entries = await gateway.logs({ tool: "calculate", since, limit: 1 });
    assert.deepEqual(entries.at(-1)?.input, { expression: "40+2" });
    const seen: (string | undefined)[] = [];
    for await (const entry of gateway.followLogs({ limit: 1 })) {
      seen.push(entry.tool);
      if (seen.length === 2) break;
      await gateway.callTool("junctor", "text", { operation: "count", text: "x" });
    }
    assert.deepEqual(seen, ["calculate", "text"]);
    const stop = new AbortController();
    const following = (async () => {
      for await (const _ of gateway.followLogs({ signal: stop.signal })) stop.abort();
    })();
    while (!stop.signal.aborted) await gateway.callTool("junctor", "time");
    await following;
  });

  it("reports health", async () => {
    const health = await gateway.health();
    assert.equal(health.ok, true);
    assert.deepEqual(health.servers.map((s) => [s.name, s.status]), [["junctor", "connected"]]);
    assert.equal(await gateway.ready(), true);
  });

  for (const provider of ["openai", "openai-responses", "anthropic"] as const) {
    it(`runs the tool loop with ${provider}`, async () => {
      const { response, messages, steps } = await gateway.run(provider, asks[provider], [{ role: "user", content: "add please" }]);
      assert.match(JSON.stringify(response), /42/);
      assert.match(JSON.stringify(response), /SUM/);
      assert.equal(steps, 1);
      assert.ok(messages.length >= 4);
    });
  }

  it("runs the tool loop with gemini", async () => {
    for (const schema of ["json", "openapi"] as const) {
      const tools = await gateway.getTools("gemini", { schema });
      const { response } = await gateway.run("gemini", asks.gemini, [{ role: "user", parts: [{ text: "add please" }] }], { tools });
      assert.match(JSON.stringify(response), /42/);
    }
  });

  it("runs the tool loop with ollama and bedrock", async () => {
    const ollama = await gateway.run(
      "ollama",
      (messages) =>
        messages.at(-1).role === "tool"
          ? { message: { role: "assistant", content: `It is ${messages.at(-1).content}` } }
          : { message: { role: "assistant", content: "", tool_calls: [{ function: { name: "junctor__calculate", arguments: { expression: "19+23" } } }] } },
      [{ role: "user", content: "add" }],
    );
    assert.equal(ollama.response.message.content, "It is 42");
    const bedrock = await gateway.run(
      "bedrock",
      (messages, tools): any =>
        messages.at(-1).content[0].toolResult
          ? { output: { message: { role: "assistant", content: [{ text: JSON.stringify(messages.at(-1).content) }] } } }
          : { output: { message: { role: "assistant", content: [{ toolUse: { toolUseId: "t", name: tools.tools[1]!.toolSpec.name, input: { expression: "19+23" } } }] } } },
      [{ role: "user", content: [{ text: "add" }] }],
    );
    assert.match(bedrock.response.output.message.content[0].text, /42/);
  });

  it("returns a failed call to the model", async () => {
    const { response } = await gateway.run("anthropic", asks.anthropic, [{ role: "user", content: "wrong" }]);
    assert.match(JSON.stringify(response), /INVALID_ARGUMENTS/);
  });

  it("stops endless tool loops", async () => {
    await assert.rejects(gateway.run("openai", asks.openai, [{ role: "user", content: "loop" }], { maxSteps: 2, server: "junctor" }), (e: unknown) => {
      assert.ok(e instanceof RunLimitError);
      assert.equal(e.messages.length, 6);
      return true;
    });
    await assert.rejects(gateway.run("acme" as Provider, () => ({}), []), TypeError);
  });
});
