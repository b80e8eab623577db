// Anthropic's messages.
import Anthropic from "@anthropic-ai/sdk";
import { gateway, question } from "./gateway.mjs";

const anthropic = new Anthropic(); // ANTHROPIC_API_KEY
const model = process.env.MODEL ?? "claude-sonnet-5-5";

const { response } = await gateway.run(
  "anthropic",
  (messages, tools) => anthropic.messages.create({ model, max_tokens: 1024, messages, tools }),
  [{ role: "user", content: question }],
);
console.log(response.content.filter((block) => block.type === "text").map((block) => block.text).join(""));
