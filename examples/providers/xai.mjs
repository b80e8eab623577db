// xAI speaks OpenAI's format, so OpenAI's library is its library.
import OpenAI from "openai";
import { gateway, question } from "./gateway.mjs";

const xai = new OpenAI({ apiKey: process.env.XAI_API_KEY, baseURL: process.env.XAI_BASE_URL ?? "https://api.x.ai/v1" });
const model = process.env.MODEL ?? "grok-4.6";

const { response } = await gateway.run(
  "xai",
  (messages, tools) => xai.chat.completions.create({ model, messages, tools }),
  [{ role: "user", content: question }],
);
console.log(response.choices[0].message.content);
