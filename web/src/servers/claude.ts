// Converts claude mcp add commands, as in the READMEs of servers, to entries of mcpServers.
import { splitArgs } from './entry';

const flagsWithValue = new Set(['-t', '--transport', '-s', '--scope', '-e', '--env', '-H', '--header', '--client-id', '--callback-port']);

/** parseClaudeCommands returns the servers of lines such as “claude mcp add NAME -- npx server”, or null if text is something else. */
export function parseClaudeCommands(text: string): Record<string, Record<string, unknown>> | null {
  const lines = text
    .replace(/\\\r?\n/g, ' ')
    .split('\n')
    .map((l) => l.trim().replace(/^[$>#]\s+/, ''))
    .filter(Boolean);
  if (lines.length === 0 || !lines.every((l) => /^claude\s+mcp\s+add(-json)?\s/.test(l))) return null;
  const out: Record<string, Record<string, unknown>> = {};
  for (const line of lines) {
    const argv = splitArgs(line);
    const [name, entry] = argv[2] === 'add-json' ? parseAddJson(argv.slice(3)) : parseAdd(argv.slice(3));
    out[name] = entry;
  }
  return out;
}

function parseAddJson(argv: string[]): [string, Record<string, unknown>] {
  const rest = argv.filter((w, i) => !w.startsWith('-') && !flagsWithValue.has(argv[i - 1] ?? ''));
  if (rest.length < 2) throw new Error('claude mcp add-json takes a name and a JSON object');
  return [rest[0]!, JSON.parse(rest[1]!) as Record<string, unknown>];
}

function parseAdd(argv: string[]): [string, Record<string, unknown>] {
  const env: Record<string, string> = {};
  const headers: Record<string, string> = {};
  let transport = '';
  const rest: string[] = [];
  for (let i = 0; i < argv.length; i++) {
    const w = argv[i]!;
    if (w === '--') {
      rest.push(...argv.slice(i + 1));
      break;
    }
    // All words after the command are its arguments.
    if (!w.startsWith('-') || (rest.length >= 2 && !/^https?:/.test(rest[1]!))) {
      rest.push(w);
      continue;
    }
    const [flag, inline] = w.startsWith('--') && w.includes('=') ? [w.slice(0, w.indexOf('=')), w.slice(w.indexOf('=') + 1)] : [w, undefined];
    const value = inline ?? (flagsWithValue.has(flag) ? argv[++i] ?? '' : '');
    if (flag === '-t' || flag === '--transport') transport = value;
    else if (flag === '-e' || flag === '--env') {
      const at = value.indexOf('=');
      if (at < 1) throw new Error(`“${value}” is not of the form NAME=value`);
      env[value.slice(0, at)] = value.slice(at + 1);
    } else if (flag === '-H' || flag === '--header') {
      const at = value.indexOf(':');
      if (at < 1) throw new Error(`“${value}” is not of the form Name: value`);
      headers[value.slice(0, at).trim()] = value.slice(at + 1).trim();
    }
  }
  const [name, target, ...args] = rest;
  if (!name || !target) throw new Error('claude mcp add takes a name and a command or URL');
  const notEmpty = (o: Record<string, string>) => Object.keys(o).length > 0;
  if (transport === 'http' || transport === 'sse' || /^https?:\/\//.test(target)) return [name, { url: target, ...(notEmpty(headers) ? { headers } : {}) }];
  return [name, { command: target, ...(args.length > 0 ? { args } : {}), ...(notEmpty(env) ? { env } : {}) }];
}
