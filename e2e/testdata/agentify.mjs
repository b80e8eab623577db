// An editor's client, on the library that editors use: node agentify.mjs SETUP,
// where SETUP is JSON with the program, its options and the two folders. It
// goes through the whole protocol and prints what it found as JSON.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const rpc = createRequire(import.meta.url)('vscode-jsonrpc/node');
const setup = JSON.parse(process.argv[2]);

const child = spawn(setup.command, setup.args, { stdio: ['pipe', 'pipe', 'inherit'] });
const ended = new Promise((resolve) => child.on('exit', (code) => resolve(code)));
const connection = rpc.createMessageConnection(
	new rpc.StreamMessageReader(child.stdout),
	new rpc.StreamMessageWriter(child.stdin),
);
const problems = [];
connection.onError(([e]) => problems.push(String(e)));
connection.listen();

const failure = async (promise) => {
	try {
		return { result: await promise };
	} catch (e) {
		return { code: e.code, message: e.message, data: e.data };
	}
};
const orchestrate = (params, token) => connection.sendRequest('agentify/orchestrateTask', params, ...(token ? [token] : []));
const initialize = (initializationOptions) =>
	connection.sendRequest('initialize', {
		processId: process.pid, rootUri: null, capabilities: {}, clientInfo: { name: 'e2e-editor' }, initializationOptions,
	});
const out = {};

out.early = await failure(orchestrate({ query: 'read the notes' }));
out.badOptions = await failure(initialize({ logLevel: 'loud', DEBUG_PORT: -1, backends: [{ id: 'a b', type: 'stdio' }] }));
out.stillEarly = await failure(orchestrate({ query: 'read the notes' }));
out.initialize = await initialize(setup.options);
connection.sendNotification('initialized', {});

const context = { currentWorkingDirectory: setup.folders[0], activeDocumentURI: `file://${setup.folders[0]}/notes.txt`, selectionText: setup.selection };
// The first task waits for the backends, but on a busy machine npx may take
// longer than they are given; the refusals then name them.
do {
	out.read = await failure(orchestrate({ query: 'read notes.txt', context }));
} while (out.read.data?.pending?.includes('filesystem') && (await new Promise((again) => setTimeout(again, 100, true))));
out.plan = await orchestrate({ query: 'save the selection to the other folder', context, dryRun: true });
out.write = await orchestrate({ query: 'save the selection to the other folder', context });
out.ambiguous = await failure(orchestrate({ query: 'delete it', context: null }));
out.denied = await failure(orchestrate({ query: 'read the password file', context }));
out.invalid = await failure(orchestrate({ query: '', context: { activeDocumentURI: 'nonsense' } }));
out.large = await failure(orchestrate({ query: 'x'.repeat(1 << 20) }));

const source = new rpc.CancellationTokenSource();
const cancelled = failure(orchestrate({ query: 'take your time' }, source.token));
setTimeout(() => source.cancel(), 200);
out.cancelled = await cancelled;

out.parallel = (await Promise.all([1, 2, 3, 4].map(() => orchestrate({ query: 'read notes.txt', context })))).length;

if (setup.options.DEBUG_PORT) {
	const base = `http://127.0.0.1:${setup.options.DEBUG_PORT}`;
	// The administrator's rights come from the token in the data folder.
	const token = readFileSync(join(process.env.HOME, '.local', 'share', 'junctor', 'page.token'), 'utf8').trim();
	const signIn = await fetch(base + '/api/session', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ token }) });
	const { session } = await signIn.json();
	const get = async (path) => {
		const res = await fetch(base + path, { headers: { Origin: base, 'X-Junctor-Session': session } });
		return `${res.status} ${await res.text()}`;
	};
	out.debug = {};
	for (const path of ['/api/status', '/api/backends', '/api/config', '/api/logs?limit=500', '/api/mcptrace?limit=500', '/']) {
		out.debug[path.split('?')[0]] = await get(path);
	}
	out.foreign = (await fetch(base + '/api/logs', { headers: { Origin: 'http://evil.example' } })).status;
	for (const path of ['/ws/logs', '/ws/mcptrace']) {
		const socket = new WebSocket(base.replace('http', 'ws') + path);
		const seen = [];
		await new Promise((resolve, reject) => {
			socket.onerror = () => reject(new Error(path));
			socket.onmessage = (m) => { seen.push(JSON.parse(m.data)); resolve(); };
		});
		const before = seen.length;
		await orchestrate({ query: 'read notes.txt', context });
		while (seen.length === before) await new Promise((r) => setTimeout(r, 20));
		socket.close();
		out.debug[path] = seen;
	}
}

out.shutdown = await connection.sendRequest('shutdown');
out.late = await failure(orchestrate({ query: 'read notes.txt', context }));
connection.sendNotification('exit');
out.exit = await ended;
out.problems = problems;
console.log(JSON.stringify(out));
