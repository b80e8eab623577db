// The official MCP client against junctor agentify: node agentify-mcp.mjs
// PROGRAM ERA, as in client.mjs. It prints what it found as JSON.
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [target, era] = process.argv.slice(2);
const [command, ...args] = JSON.parse(target);
const mode = era === 'legacy' || era === 'auto' ? era : { pin: era };
const client = new Client({ name: 'e2e', version: '1.0.0' }, { capabilities: {}, versionNegotiation: { mode } });
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
const orchestrate = (args) => client.callTool({ name: 'orchestrate_task', arguments: args });
console.log(JSON.stringify({
	server: client.getServerVersion()?.name,
	tools: (await client.listTools()).tools.map((t) => t.name),
	sum: await orchestrate({ query: 'how much is six times seven?' }),
	plan: await orchestrate({ query: 'how much is six times seven?', dryRun: true }),
	refused: await orchestrate({ query: 'bake a cake' }),
}));
await client.close();
