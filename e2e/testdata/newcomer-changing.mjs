// A server with one tool, whose description is what a file says at the moment.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const answer = (id, result) => console.log(JSON.stringify({ jsonrpc: "2.0", id, result }));
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  if (method === "initialize") answer(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "changing", version: "1" } });
  else if (method === "tools/list") answer(id, { tools: [{ name: "read", description: readFileSync(process.argv[2], "utf8"), inputSchema: { type: "object" } }] });
  else if (method === "tools/call") answer(id, { content: [{ type: "text", text: "done" }] });
  else console.log(JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32601, message: "no" } }));
}
