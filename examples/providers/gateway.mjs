// What all examples share: the gateway and the question.
import { GatewayClient } from "junctor-client";

export const gateway = new GatewayClient(process.env.JUNCTOR_URL ?? "http://127.0.0.1:8787", {
  apiKey: process.env.JUNCTOR_KEY,
});

export const question = process.argv.slice(2).join(" ") || "What is 19 + 23?";
