// A minimal MCP server on stdio, for behaviour that real servers do not have.
import { createInterface } from 'node:readline';

/** serve serves tools, and HTML documents by URI as the resources of MCP Apps. */
export function serve(name, tools, apps = {}) {
  const send = (m) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\n');
  const tasks = new Map(); // of tools that run only as tasks
  createInterface({ input: process.stdin })
    .on('line', async (line) => {
      const { id, method, params } = JSON.parse(line);
      if (id === undefined) return;
      if (method === 'initialize') {
        send({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {}, ...(Object.keys(apps).length > 0 && { resources: {} }) }, serverInfo: { name, version: '1' } } });
      } else if (method === 'tools/list') send({ id, result: { tools: tools.map(({ run, ...tool }) => tool) } });
      else if (method === 'tools/call') {
        const tool = tools.find((t) => t.name === params.name);
        const notify = (method, more) => send({ method, params: more });
        if (params.task) {
          const now = new Date().toISOString();
          const task = { taskId: `task-${tasks.size}`, status: 'working', createdAt: now, lastUpdatedAt: now, ttl: null, pollInterval: 50 };
          const entry = { task };
          tasks.set(task.taskId, entry);
          send({ id, result: { task } });
          entry.result = await tool.run(params.arguments ?? {}, { task, tasks });
          if (task.status === 'working') task.status = 'completed';
          return;
        }
        send({ id, result: await tool.run(params.arguments ?? {}, { token: params._meta?.progressToken, notify, tasks }) });
      } else if (method === 'tasks/get') send({ id, result: tasks.get(params.taskId).task });
      else if (method === 'tasks/result') send({ id, result: tasks.get(params.taskId).result });
      else if (method === 'tasks/cancel') {
        const { task } = tasks.get(params.taskId);
        task.status = 'cancelled';
        send({ id, result: task });
      } else if (method === 'resources/read' && apps[params.uri]) {
        send({ id, result: { contents: [{ uri: params.uri, mimeType: 'text/html;profile=mcp-app', text: apps[params.uri] }] } });
      } else if (method === 'resources/list') send({ id, result: { resources: [] } });
      else if (method === 'ping') send({ id, result: {} });
      else send({ id, error: { code: -32601, message: 'no such method' } });
    })
    .on('close', () => process.exit(0));
}
