// Drives the scripted model with the official JavaScript SDKs: one streamed
// and one whole answer, and one tool loop, for each wire format. Prints one
// line of JSON.
import { createRequire } from "node:module";
const require = createRequire(process.argv[3] + "/package.json");
const load = async (name) => import(require.resolve(name));
const url = process.argv[2];
const parameters = { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } };
const say = "grüß dich 😀", add = "add 1 and 2";
const out = {};

async function chat() {
  const { default: OpenAI } = await load("openai");
  const client = new OpenAI({ apiKey: "k", baseURL: url + "/v1", maxRetries: 0 });
  const tools = [{ type: "function", function: { name: "calc__add", description: "adds", parameters } }];
  const ask = async (messages, stream) => {
    if (!stream) return (await client.chat.completions.create({ model: "gpt-test", messages, tools })).choices[0].message;
    const s = client.chat.completions.stream({ model: "gpt-test", messages, tools, stream_options: { include_usage: true } });
    const done = await s.finalChatCompletion();
    if (!(done.usage?.prompt_tokens > 0)) throw new Error("no usage");
    return done.choices[0].message;
  };
  const user = (content) => ({ role: "user", content });
  const text = [(await ask([user(say)], true)).content, (await ask([user(say)], false)).content];
  const turn = await ask([user(add)], true);
  const results = turn.tool_calls.map((c) => ({ role: "tool", tool_call_id: c.id, content: "3" }));
  const last = await ask([user(add), { role: "assistant", content: null, tool_calls: turn.tool_calls }, ...results], true);
  return { text, calls: turn.tool_calls.map((c) => [c.function.name, JSON.parse(c.function.arguments)]), last: last.content };
}

async function responses() {
  const { default: OpenAI } = await load("openai");
  const client = new OpenAI({ apiKey: "k", baseURL: url + "/v1", maxRetries: 0 });
  const base = { model: "gpt-test", store: false, include: ["reasoning.encrypted_content"],
    tools: [{ type: "function", name: "calc__add", description: "adds", strict: false, parameters }] };
  const ask = async (input, stream) => {
    if (!stream) return client.responses.create({ ...base, input });
    let streamed = "", final;
    for await (const e of client.responses.stream({ ...base, input })) {
      if (e.type === "response.output_text.delta") streamed += e.delta;
      if (e.type === "response.completed") final = e.response;
    }
    const text = final.output.filter((o) => o.type === "message").map((o) => o.content[0].text).join("");
    if (streamed !== text) throw new Error(`deltas ${streamed}, whole ${text}`);
    return { ...final, output_text: text };
  };
  const user = (content) => ({ type: "message", role: "user", content });
  const text = [(await ask([user(say)], true)).output_text, (await ask([user(say)], false)).output_text];
  const turn = await ask([user(add)], true);
  const calls = turn.output.filter((o) => o.type === "function_call");
  const results = calls.map((c) => ({ type: "function_call_output", call_id: c.call_id, output: "3" }));
  const last = await ask([user(add), ...turn.output.map(({ parsed_arguments, ...o }) => o), ...results], true);
  return { text, calls: calls.map((c) => [c.name, JSON.parse(c.arguments)]), last: last.output_text };
}

async function anthropic() {
  const { default: Anthropic } = await load("@anthropic-ai/sdk");
  const client = new Anthropic({ apiKey: "k", baseURL: url, maxRetries: 0 });
  const tools = [{ name: "calc__add", description: "adds", input_schema: parameters }];
  const ask = async (messages, stream) => {
    const body = { model: "claude-test", max_tokens: 100, messages, tools };
    return stream ? client.messages.stream(body).finalMessage() : client.messages.create(body);
  };
  const user = (content) => ({ role: "user", content });
  const words = (m) => m.content.filter((b) => b.type === "text").map((b) => b.text).join("");
  const text = [words(await ask([user(say)], true)), words(await ask([user(say)], false))];
  const turn = await ask([user(add)], true);
  const calls = turn.content.filter((b) => b.type === "tool_use");
  const results = calls.map((c) => ({ type: "tool_result", tool_use_id: c.id, content: "3" }));
  const last = await ask([user(add), { role: "assistant", content: turn.content }, user(results)], true);
  return { text, calls: calls.map((c) => [c.name, c.input]), last: words(last) };
}

async function gemini() {
  const { GoogleGenAI } = await load("@google/genai");
  const client = new GoogleGenAI({ apiKey: "k", httpOptions: { baseUrl: url } });
  const config = { tools: [{ functionDeclarations: [{ name: "calc__add", description: "adds", parametersJsonSchema: parameters }] }] };
  const ask = async (contents, stream) => {
    const body = { model: "gemini-3-test", contents, config };
    if (!stream) return (await client.models.generateContent(body)).candidates[0].content.parts;
    const parts = [];
    for await (const chunk of await client.models.generateContentStream(body)) parts.push(...(chunk.candidates[0].content?.parts ?? []));
    return parts;
  };
  const user = (t) => ({ role: "user", parts: [{ text: t }] });
  const words = (parts) => parts.filter((p) => p.text && !p.thought).map((p) => p.text).join("");
  const text = [words(await ask([user(say)], true)), words(await ask([user(say)], false))];
  const turn = await ask([user(add)], true);
  const calls = turn.filter((p) => p.functionCall).map((p) => p.functionCall);
  const results = calls.map((c) => ({ functionResponse: { id: c.id, name: c.name, response: { output: "3" } } }));
  const last = await ask([user(add), { role: "model", parts: turn }, { role: "user", parts: results }], true);
  return { text, calls: calls.map((c) => [c.name, c.args]), last: words(last) };
}

for (const [name, f] of Object.entries({ chat, responses, anthropic, gemini })) {
  try { out[name] = await f(); } catch (e) { out[name] = { error: String(e?.stack ?? e) }; }
}
console.log(JSON.stringify(out));
