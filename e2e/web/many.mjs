// An MCP server with the number of tools in its argument.
import { serve } from './mcp.mjs';

const verbs = ['create', 'list', 'update', 'delete', 'search', 'export', 'merge', 'close', 'archive', 'assign'];
const things = ['invoice', 'ticket', 'customer', 'branch', 'document', 'calendar event', 'deployment', 'metric', 'contact', 'image'];
const n = Number(process.argv[2] ?? 5000);
serve(
  'many',
  Array.from({ length: n }, (_, i) => {
    const verb = verbs[i % 10];
    const thing = things[Math.floor(i / 10) % 10];
    return {
      name: `${verb}_${thing.replace(' ', '_')}_${i}`,
      description: `${verb[0].toUpperCase()}${verb.slice(1)} a ${thing} of department ${Math.floor(i / 100)}.`,
      inputSchema: { type: 'object', properties: { name: { type: 'string' } } },
      run: () => ({ content: [{ type: 'text', text: 'done' }] }),
    };
  }),
);
