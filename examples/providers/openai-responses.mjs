// OpenAI's responses. The whole output, reasoning included, goes back with
// the results, so nothing has to be stored at the provider.
import OpenAI from "openai";
import { gateway, question } from "./gateway.mjs";

const openai = new OpenAI(); // OPENAI_API_KEY
const model = process.env.MODEL ?? "gpt-5.6-terra";

const { response } = await gateway.run(
  "openai-responses",
  (input, tools) => openai.responses.create({ model, input, tools, store: false, include: ["reasoning.encrypted_content"] }),
  [{ role: "user", content: question }],
);
console.log(response.output_text);
