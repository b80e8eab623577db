// A local model in Ollama, by its own API. (By its OpenAI-compatible one,
// take openai.mjs and OPENAI_BASE_URL.)
import { Ollama } from "ollama";
import { gateway, question } from "./gateway.mjs";

const ollama = new Ollama({ host: process.env.OLLAMA_HOST });
const model = process.env.MODEL ?? "qwen3";

const { response } = await gateway.run(
  "ollama",
  (messages, tools) => ollama.chat({ model, messages, tools }),
  [{ role: "user", content: question }],
);
console.log(response.message.content);
