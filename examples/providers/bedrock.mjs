// Amazon Bedrock's Converse API.
import { BedrockRuntimeClient, ConverseCommand } from "@aws-sdk/client-bedrock-runtime";
import { gateway, question } from "./gateway.mjs";

const bedrock = new BedrockRuntimeClient({}); // region and credentials as always with AWS
const modelId = process.env.MODEL ?? "us.anthropic.claude-sonnet-5-5";

const { response } = await gateway.run(
  "bedrock",
  (messages, toolConfig) => bedrock.send(new ConverseCommand({ modelId, messages, toolConfig })),
  [{ role: "user", content: [{ text: question }] }],
);
console.log(response.output.message.content.map((block) => block.text ?? "").join(""));
