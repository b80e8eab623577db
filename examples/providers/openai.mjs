// OpenAI's chat completions.
import OpenAI from "openai";
import { gateway, question } from "./gateway.mjs";

const openai = new OpenAI(); // OPENAI_API_KEY
const model = process.env.MODEL ?? "gpt-5.6-terra";

const { response } = await gateway.run(
  "openai",
  (messages, tools) => openai.chat.completions.create({ model, messages, tools }),
  [{ role: "user", content: question }],
);
console.log(response.choices[0].message.content);
