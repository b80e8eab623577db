// Command lines of claude mcp add, which READMEs of servers have, as entries of mcpServers.
import { splitArgs } from './entry';

const valued = new Set(['-t', '--transport', '-s', '--scope', '-e', '--env', '-H', '--header', '--client-id', '--callback-port']);

/** fromClaude returns the servers of lines such as “claude mcp add NAME -- npx server”; null when text is none. */
export function fromClaude(text: string): Record<string, Record<string, unknown>> | null {
  const lines = text
    .replace(/\\\r?\n/g, ' ')
    .split('\n')
    .map((l) => l.trim().replace(/^[$>#]\s+/, ''))
    .filter(Boolean);
  if (lines.length === 0 || !lines.every((l) => /^claude\s+mcp\s+add(-json)?\s/.test(l))) return null;
  const out: Record<string, Record<string, unknown>> = {};
  for (const line of lines) {
    const words = splitArgs(line);
    const [name, entry] = words[2] === 'add-json' ? json(words.slice(3)) : plain(words.slice(3));
    out[name] = entry;
  }
  return out;
}

function json(words: string[]): [string, Record<string, unknown>] {
  const rest = words.filter((w, i) => !w.startsWith('-') && !valued.has(words[i - 1] ?? ''));
  if (rest.length < 2) throw new Error('claude mcp add-json takes a name and a JSON object');
  return [rest[0]!, JSON.parse(rest[1]!) as Record<string, unknown>];
}

function plain(words: string[]): [string, Record<string, unknown>] {
  const env: Record<string, string> = {};
  const headers: Record<string, string> = {};
  let transport = '';
  const rest: string[] = [];
  for (let i = 0; i < words.length; i++) {
    const w = words[i]!;
    if (w === '--') {
      rest.push(...words.slice(i + 1));
      break;
    }
    // After the name and the command everything belongs to the command.
    if (!w.startsWith('-') || (rest.length >= 2 && !/^https?:/.test(rest[1]!))) {
      rest.push(w);
      continue;
    }
    const [flag, inline] = w.startsWith('--') && w.includes('=') ? [w.slice(0, w.indexOf('=')), w.slice(w.indexOf('=') + 1)] : [w, undefined];
    const value = inline ?? (valued.has(flag) ? words[++i] ?? '' : '');
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
  const some = (o: Record<string, string>) => Object.keys(o).length > 0;
  if (transport === 'http' || transport === 'sse' || /^https?:\/\//.test(target)) return [name, { url: target, ...(some(headers) ? { headers } : {}) }];
  return [name, { command: target, ...(args.length > 0 ? { args } : {}), ...(some(env) ? { env } : {}) }];
}
