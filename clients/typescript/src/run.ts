/** The tool loop, around the caller's own client of a provider. */

import type { GatewayClient } from "./client.js";
import type { Provider, Tools } from "./types.js";

/**
 * Asks the model: gets the conversation and the tools, returns the provider's
 * response as its library gave it.
 */
export type Ask<P extends Provider, R> = (messages: any[], tools: Tools[P]) => R | Promise<R>;

export interface RunOptions<P extends Provider> {
  /** The tools for the model; those of getTools by default. */
  tools?: Tools[P];
  /** The server of tool names without one; also limits the tools. */
  server?: string;
  /** The maximum number of rounds of tool calls; 25 by default. */
  maxSteps?: number;
  signal?: AbortSignal;
}

/** The result of a run. */
export interface RunResult<R> {
  /** The model's last response. */
  response: R;
  /** The whole conversation. */
  messages: any[];
  steps: number;
}

/** The model went on calling tools beyond maxSteps. */
export class RunLimitError extends Error {
  constructor(
    steps: number,
    readonly messages: any[],
  ) {
    super(`the model still calls tools after ${steps} steps; raise maxSteps or narrow the task`);
    this.name = "RunLimitError";
  }
}

interface Turn {
  messages: any[]; // the model's turn, as it goes back into the conversation
  calls: any[];
}

const parseTurn: Record<Provider, (response: any) => Turn> = {
  openai: chat,
  xai: chat,
  ollama: chat,
  "openai-responses": (r) => {
    const output: any[] = r.output ?? [];
    return { messages: output, calls: output.filter((item) => item.type === "function_call") };
  },
  anthropic: (r) => {
    const content: any[] = r.content ?? [];
    return { messages: [{ role: "assistant", content }], calls: content.filter((block) => block.type === "tool_use") };
  },
  // The turn is sent back unchanged: its parts carry thought signatures, and
  // the API refuses a history without them.
  gemini: (r) => {
    const content = r.candidates?.[0]?.content;
    const calls = (content?.parts ?? []).map((p: any) => p.functionCall).filter(Boolean);
    return { messages: content ? [content] : [], calls };
  },
  bedrock: (r) => {
    const message = r.output?.message;
    return { messages: message ? [message] : [], calls: (message?.content ?? []).map((b: any) => b.toolUse).filter(Boolean) };
  },
};

function chat(r: any): Turn {
  const message = r.choices?.[0]?.message ?? r.message;
  return { messages: [message], calls: message?.tool_calls ?? [] };
}

export async function run<P extends Provider, R>(
  gateway: GatewayClient,
  provider: P,
  ask: Ask<P, R>,
  messages: readonly any[],
  options: RunOptions<P>,
): Promise<RunResult<R>> {
  if (!(provider in parseTurn)) throw new TypeError(`unknown provider ${JSON.stringify(provider)}; use one of ${Object.keys(parseTurn).join(", ")}`);
  const { server, signal, maxSteps = 25 } = options;
  const tools = options.tools ?? (await gateway.getTools(provider, { ...(server && { server }), ...(signal && { signal }) }));
  const conversation = [...messages];
  for (let steps = 0; ; steps++) {
    const response = await ask(conversation, tools);
    const turn = parseTurn[provider](response);
    conversation.push(...turn.messages);
    if (turn.calls.length === 0) return { response, messages: conversation, steps };
    if (steps === maxSteps) throw new RunLimitError(maxSteps, conversation);
    const results = await gateway.execute(provider, turn.calls as object[], { ...(server && { server }), ...(signal && { signal }) });
    conversation.push(...resultMessages(provider, results));
  }
}

/** Returns the messages with the results, in the provider's format. */
function resultMessages(provider: Provider, results: any[]): any[] {
  switch (provider) {
    case "anthropic":
    case "bedrock":
      return [{ role: "user", content: results }];
    case "gemini":
      return [{ role: "user", parts: results }];
    default:
      return results;
  }
}
