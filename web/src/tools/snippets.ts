// Code snippets for a call: curl, Python, TypeScript and the command line.

export interface SnippetCall {
  origin: string;
  server: string;
  tool: string;
  args: unknown;
}

/** quote returns text as one word of a POSIX shell. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** python returns a JSON value as a Python literal. */
export function python(value: unknown, indent = ''): string {
  if (value === null || value === undefined) return 'None';
  if (value === true) return 'True';
  if (value === false) return 'False';
  if (typeof value === 'string') return JSON.stringify(value).replace(/[\u2028\u2029\u007f]/g, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
  if (typeof value === 'number') return String(value);
  const inner = indent + '    ';
  if (Array.isArray(value)) {
    if (value.length === 0) return '[]';
    return `[\n${value.map((v) => inner + python(v, inner)).join(',\n')},\n${indent}]`;
  }
  const entries = Object.entries(value as object);
  if (entries.length === 0) return '{}';
  return `{\n${entries.map(([k, v]) => `${inner}${python(k)}: ${python(v, inner)}`).join(',\n')},\n${indent}}`;
}

export const snippets: { id: string; label: string; lang: string; make: (c: SnippetCall) => string }[] = [
  {
    id: 'curl',
    label: 'curl',
    lang: 'shell',
    make: (c) =>
      [
        `curl -s ${c.origin}/call_tool \\`,
        `  -H 'Content-Type: application/json' \\`,
        `  -d ${quote(JSON.stringify({ server: c.server, tool: c.tool, arguments: c.args ?? {} }))}`,
      ].join('\n'),
  },
  {
    id: 'python',
    label: 'Python',
    lang: 'python',
    make: (c) =>
      [
        'from junctor import GatewayClient',
        '',
        `gateway = GatewayClient(${python(c.origin)})`,
        `result = gateway.call_tool(${python(c.server)}, ${python(c.tool)}, ${python(c.args ?? {})})`,
        'print(result)',
      ].join('\n'),
  },
  {
    id: 'typescript',
    label: 'TypeScript',
    lang: 'typescript',
    make: (c) =>
      [
        `import { GatewayClient } from 'junctor-client';`,
        '',
        `const gateway = new GatewayClient(${JSON.stringify(c.origin)});`,
        `const result = await gateway.callTool(${JSON.stringify(c.server)}, ${JSON.stringify(c.tool)}, ${JSON.stringify(c.args ?? {}, null, 2)});`,
        `console.log(result);`,
      ].join('\n'),
  },
  {
    id: 'cli',
    label: 'Command line',
    lang: 'shell',
    make: (c) => `junctor tools call ${shellWord(`${c.server}:${c.tool}`)} --args ${quote(JSON.stringify(c.args ?? {}))}`,
  },
];

function shellWord(s: string): string {
  return /^[\w:./-]+$/.test(s) ? s : quote(s);
}
