// The official TypeScript client against a gateway: node client.mjs TARGET ERA
// where TARGET is a URL or a program with its arguments as JSON, and ERA is
// legacy, auto or a version to insist on. It prints what it found as JSON.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [target, era] = process.argv.slice(2);
const mode = era === 'legacy' || era === 'auto' ? era : { pin: era };
const client = new Client(
	{ name: 'e2e', version: '1.0.0' },
	{ capabilities: { elicitation: { form: {} }, sampling: {} }, versionNegotiation: { mode } },
);
client.setRequestHandler('elicitation/create', async () => ({ action: 'accept', content: { username: 'ann', email: 'ann@example.com' } }));
client.setRequestHandler('sampling/createMessage', async () => ({
	model: 'scripted', role: 'assistant', content: { type: 'text', text: 'sampled words' },
}));
const transport = target.startsWith('[')
	? new StdioClientTransport({ command: JSON.parse(target)[0], args: JSON.parse(target).slice(1), env: process.env })
	: new StreamableHTTPClientTransport(new URL(target));
await client.connect(transport);

// Progress is taken from the messages: the client drops what it reads together
// with the response, because it calls onprogress later than it ends the request.
let progress = [];
const receive = transport.onmessage;
transport.onmessage = (message, extra) => {
	if (message.method === 'notifications/progress') progress.push(message.params.progress);
	receive(message, extra);
};

const run = async (tool, args = {}) => {
	progress = [];
	const result = await client.callTool(
		{ name: 'execute_tool', arguments: { server: 'everything', tool, arguments: args } },
		{ onprogress: () => {} }, // asks for progress
	);
	return { result, progress };
};
const out = {
	version: client.getNegotiatedProtocolVersion?.(),
	server: client.getServerVersion()?.name,
	instructions: client.getInstructions(),
	tools: (await client.listTools()).tools.map((t) => t.name),
	search: (await client.callTool({ name: 'search_tools', arguments: { query: 'image content' } })).content[0].text,
	image: (await run('test_image_content')).result.content[0].type,
	progress: (await run('test_tool_with_progress')).progress,
	elicit: (await run('test_elicitation', { message: 'who?' })).result.content?.[0]?.text,
	failure: (await run('no_such_tool')).result.isError,
};
console.log(JSON.stringify(out));
await client.close();
process.exit(0);
