// The loop that run() drives, written out for Anthropic: take it apart to
// stream, to ask the user before a call, or to change results on their way.
import Anthropic from "@anthropic-ai/sdk";
import { gateway, question } from "./gateway.mjs";

const anthropic = new Anthropic(); // ANTHROPIC_API_KEY
const model = process.env.MODEL ?? "claude-sonnet-5-5";

// 1. The tools in the provider's format. With many, narrow them down:
//    { server: "files" }, { tags: "read" }, { query: "arithmetic", limit: 10 }.
const tools = await gateway.getTools("anthropic");

const messages = [{ role: "user", content: question }];
for (;;) {
  // 2. Ask the model.
  const response = await anthropic.messages.create({ model, max_tokens: 1024, messages, tools });
  messages.push({ role: "assistant", content: response.content });
  const calls = response.content.filter((block) => block.type === "tool_use");
  if (calls.length === 0) {
    console.log(response.content.map((block) => block.text ?? "").join(""));
    break;
  }
  // 3. Run what it called, in parallel; every call gets an answer.
  for (const call of calls) console.error(`→ ${call.name} ${JSON.stringify(call.input)}`);
  messages.push({ role: "user", content: await gateway.execute("anthropic", calls) });
}
