// Google's Gemini. The model's turns go back as they came, with the thought
// signatures that the API asks for.
import { GoogleGenAI } from "@google/genai";
import { gateway, question } from "./gateway.mjs";

const genai = new GoogleGenAI({ apiKey: process.env.GEMINI_API_KEY });
const model = process.env.MODEL ?? "gemini-flash-latest";

const { response } = await gateway.run(
  "gemini",
  (contents, tool) => genai.models.generateContent({ model, contents, config: { tools: [tool] } }),
  [{ role: "user", parts: [{ text: question }] }],
);
console.log(response.text);
