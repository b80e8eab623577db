// Conversion between the form for one server and its mcpServers entry.

export interface ServerForm {
  name: string;
  kind: 'program' | 'url' | 'openapi';
  command: string;
  args: string;
  env: string;
  url: string;
  headers: string;
  openapi: string;
  baseUrl: string;
}

/** splitArgs splits arguments as a shell does, with quotes and backslash escapes. */
export function splitArgs(text: string): string[] {
  const out: string[] = [];
  let argument = '';
  let inArgument = false;
  let quote = '';
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!;
    if (quote) {
      if (c === quote) quote = '';
      else if (c === '\\' && quote === '"' && /["\\$`]/.test(text[i + 1] ?? '')) argument += text[++i];
      else argument += c;
    } else if (c === '"' || c === "'") {
      quote = c;
      inArgument = true;
    } else if (c === '\\' && i + 1 < text.length) {
      argument += text[++i];
      inArgument = true;
    } else if (/\s/.test(c)) {
      if (inArgument) out.push(argument);
      argument = '';
      inArgument = false;
    } else {
      argument += c;
      inArgument = true;
    }
  }
  if (inArgument) out.push(argument);
  return out;
}

function parsePairs(text: string, separator: string, what: string): Record<string, string> | undefined {
  const out: Record<string, string> = {};
  for (const line of text.split('\n')) {
    if (!line.trim()) continue;
    const at = line.indexOf(separator);
    if (at < 1) throw new Error(`${what}: “${line.trim()}” is not of the form name${separator}value`);
    out[line.slice(0, at).trim()] = line.slice(at + 1).trim();
  }
  return Object.keys(out).length > 0 ? out : undefined;
}

export function entryFromForm(f: ServerForm): Record<string, unknown> {
  if (f.kind === 'openapi') {
    const headers = parsePairs(f.headers, ':', 'Headers');
    const baseUrl = f.baseUrl.trim();
    return { openapi: f.openapi.trim(), ...(baseUrl ? { baseUrl } : {}), ...(headers ? { headers } : {}) };
  }
  if (f.kind === 'url') {
    const headers = parsePairs(f.headers, ':', 'Headers');
    return { url: f.url.trim(), ...(headers ? { headers } : {}) };
  }
  const env = parsePairs(f.env, '=', 'Environment');
  const args = splitArgs(f.args);
  return { command: f.command.trim(), ...(args.length > 0 ? { args } : {}), ...(env ? { env } : {}) };
}

/** quoteArgs is the inverse of splitArgs. */
function quoteArgs(args: string[]): string {
  return args.map((a) => (/^[\w@%+=:,./${}\[\]-]+$/.test(a) ? a : `'${a.replaceAll("'", `'"'"'`)}'`)).join(' ');
}

/** formFromEntry returns the form for an entry, and the keys that have no field in the form. */
export function formFromEntry(name: string, entry: Record<string, unknown>): { form: ServerForm; rest: Record<string, unknown> } {
  const { command, args, env, url, headers, openapi, baseUrl, ...rest } = entry as {
    command?: string;
    args?: string[];
    env?: Record<string, string>;
    url?: string;
    headers?: Record<string, string>;
    openapi?: string;
    baseUrl?: string;
  };
  const list = (o: Record<string, string> | undefined, separator: string) => Object.entries(o ?? {}).map(([k, v]) => k + separator + v).join('\n');
  return {
    form: {
      name,
      kind: openapi ? 'openapi' : url ? 'url' : 'program',
      command: command ?? '',
      args: quoteArgs(args ?? []),
      env: list(env, '='),
      url: url ?? '',
      headers: list(headers, ': '),
      openapi: openapi ?? '',
      baseUrl: baseUrl ?? '',
    },
    rest,
  };
}
