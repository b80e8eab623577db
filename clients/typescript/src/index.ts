/**
 * Client of the Junctor gateway: the tools of MCP servers for any model.
 *
 * ```ts
 * const gateway = new GatewayClient("http://127.0.0.1:8787");
 * const tools = await gateway.getTools("openai");            // give these to the provider
 * const result = await gateway.execute("openai", toolCall);  // give this back to it
 * ```
 *
 * It has no dependencies and runs wherever there is fetch.
 */
export { GatewayClient, type ClientOptions, type Filter, type ToolOptions, type LogFilter } from "./client.js";
export {
  GatewayError,
  GatewayConnectionError,
  GatewayTimeout,
  InvalidRequestError,
  AuthenticationError,
  PermissionDeniedError,
  NotFoundError,
  RateLimitError,
  UpstreamError,
} from "./errors.js";
export { RunLimitError, type Ask, type RunOptions, type RunResult } from "./run.js";
export type {
  AnthropicResult,
  AnthropicTool,
  BedrockResult,
  BedrockTools,
  CallToolResult,
  FunctionTool,
  GeminiResult,
  GeminiTools,
  Health,
  JSONObject,
  JSONValue,
  LogEntry,
  OllamaResult,
  OpenAIResult,
  Provider,
  ResponsesResult,
  ResponsesTool,
  Result,
  Results,
  Tool,
  Tools,
  Warning,
} from "./types.js";
export { warningsOf } from "./types.js";
