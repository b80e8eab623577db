/** The types of requests and responses. */

export type JSONValue = null | boolean | number | string | JSONValue[] | JSONObject;
export interface JSONObject {
  [key: string]: JSONValue | undefined;
}

export type Provider = "gemini" | "openai" | "openai-responses" | "xai" | "anthropic" | "ollama" | "bedrock";

/** What a provider's format could not express. */
export interface Warning {
  code: "lowered" | "left_out" | "limit" | "pending" | "down" | "ignored" | "none";
  message: string;
  tool?: string;
  paths?: string[];
  tools?: string[];
}

/** An MCP tool definition with the server that it belongs to. */
export interface Tool {
  name: string;
  server: string;
  title?: string;
  description?: string;
  inputSchema: JSONObject;
  outputSchema?: JSONObject;
  annotations?: JSONObject;
}

/** A tool of OpenAI's chat completions, of xAI and of Ollama. */
export interface FunctionTool {
  type: "function";
  function: { name: string; description: string; parameters: Record<string, unknown>; strict?: boolean };
}

/** A tool of OpenAI's responses API. */
export interface ResponsesTool {
  type: "function";
  name: string;
  description: string;
  parameters: Record<string, unknown>;
  strict: boolean;
}

/** A tool of Anthropic's messages API. */
export interface AnthropicTool {
  name: string;
  description: string;
  input_schema: { type: "object"; [key: string]: unknown };
}

/** One tool of Gemini, with all declarations. */
export interface GeminiTools {
  functionDeclarations: { name: string; description: string; parametersJsonSchema?: unknown; parameters?: any }[];
}

/** A tool configuration of Bedrock's Converse API. */
export interface BedrockTools {
  tools: { toolSpec: { name: string; description: string; inputSchema: { json: any } } }[];
}

/** The tools in the format of each provider's library. */
export interface Tools {
  gemini: GeminiTools;
  openai: FunctionTool[];
  "openai-responses": ResponsesTool[];
  xai: FunctionTool[];
  anthropic: AnthropicTool[];
  ollama: FunctionTool[];
  bedrock: BedrockTools;
}

/** The results in the format of each provider. */
export interface Results {
  gemini: GeminiResult;
  openai: OpenAIResult;
  "openai-responses": ResponsesResult;
  xai: OpenAIResult;
  anthropic: AnthropicResult;
  ollama: OllamaResult;
  bedrock: BedrockResult;
}

export type Result = Results[Provider];

export interface OpenAIResult {
  role: "tool";
  tool_call_id: string;
  content: string;
}

export interface ResponsesResult {
  type: "function_call_output";
  call_id: string;
  output: string | any[];
}

export interface AnthropicResult {
  type: "tool_result";
  tool_use_id: string;
  content: any[];
  is_error?: boolean;
}

/** A part of a content. */
export interface GeminiResult {
  functionResponse: {
    id?: string;
    name: string;
    response: { output?: unknown; error?: string; [key: string]: unknown };
    parts?: any[];
  };
}

export interface OllamaResult {
  role: "tool";
  tool_name: string;
  tool_call_id?: string;
  content: string;
  images?: string[];
}

/** A block of a message's content. Images and documents have their bytes. */
export interface BedrockResult {
  toolResult: { toolUseId: string; status: "success" | "error"; content: any[] };
}

/** The MCP result of a tool call. */
export interface CallToolResult {
  content?: any[];
  structuredContent?: unknown;
  isError?: boolean;
  [key: string]: unknown;
}

export interface LogEntry {
  seq: number;
  id: string;
  timestamp: string;
  durationMs: number;
  server?: string;
  tool?: string;
  method?: string;
  face?: string;
  caller?: string;
  sessionId?: string;
  status: "ok" | "error" | "failed";
  code?: string;
  input?: JSONValue;
  result?: JSONValue;
  error?: string;
}

export interface Health {
  ok: boolean;
  version?: string;
  servers: {
    name: string;
    status: "connecting" | "connected" | "disconnected" | "auth_required" | "disabled";
    tools: number;
    since?: string;
    reason?: string;
  }[];
}

const warnings = Symbol("warnings");

/** Attaches warnings to tools in a property that providers' libraries do not see. */
export function withWarnings<T extends object>(tools: T, list: Warning[]): T {
  Object.defineProperty(tools, warnings, { value: list });
  return tools;
}

/** Returns the gateway's warnings about these tools. */
export function warningsOf(tools: object): Warning[] {
  return (tools as { [warnings]?: Warning[] })[warnings] ?? [];
}
