// The catalog of resources, resource templates and prompts of the servers.
import { ApiError, send } from '../lib/api';

export interface EntryArgument {
  name: string;
  description?: string;
  required?: boolean;
}

export interface CatalogEntry {
  server: string;
  kind: 'resource' | 'template' | 'prompt';
  name: string;
  title?: string;
  description?: string;
  /** The URI of a resource, or the URI template. */
  uri?: string;
  mimeType?: string;
  arguments?: EntryArgument[];
}

/** mcpRequest sends an MCP request to a server and returns its result. */
export async function mcpRequest<T>(server: string, method: string, params: unknown, signal?: AbortSignal): Promise<T> {
  return (await send<{ result: T }>('POST', `/api/servers/${encodeURIComponent(server)}/request`, { method, params }, signal)).result;
}

/** maxPages bounds the pages that are read of one list of a server. */
const maxPages = 10;

type RawObject = Record<string, unknown>;

async function listAllPages(server: string, method: string, key: string, signal: AbortSignal): Promise<RawObject[]> {
  const out: RawObject[] = [];
  let cursor: unknown;
  for (let page = 0; page < maxPages; page++) {
    let result: RawObject;
    try {
      result = await mcpRequest<RawObject>(server, method, cursor === undefined ? {} : { cursor }, signal);
    } catch (e) {
      if (e instanceof ApiError && e.status !== 0) return out; // most servers lack one of these methods
      throw e;
    }
    if (Array.isArray(result[key])) out.push(...(result[key] as RawObject[]));
    cursor = result.nextCursor;
    if (typeof cursor !== 'string' || cursor === '') break;
  }
  return out;
}

const nonEmptyString = (v: unknown) => (typeof v === 'string' && v !== '' ? v : undefined);

/** listEntries lists the prompts, templates and resources of a server. */
export async function listEntries(server: string, signal: AbortSignal): Promise<CatalogEntry[]> {
  const [resources, templates, prompts] = await Promise.all([
    listAllPages(server, 'resources/list', 'resources', signal),
    listAllPages(server, 'resources/templates/list', 'resourceTemplates', signal),
    listAllPages(server, 'prompts/list', 'prompts', signal),
  ]);
  const common = (o: RawObject) => ({ server, name: nonEmptyString(o.name) ?? nonEmptyString(o.uri) ?? '', title: nonEmptyString(o.title), description: nonEmptyString(o.description), mimeType: nonEmptyString(o.mimeType) });
  return [
    ...prompts.map((o): CatalogEntry => ({ ...common(o), kind: 'prompt', arguments: Array.isArray(o.arguments) ? (o.arguments as EntryArgument[]) : [] })),
    ...templates.map((o): CatalogEntry => ({ ...common(o), kind: 'template', uri: nonEmptyString(o.uriTemplate) ?? '', arguments: templateVariables(nonEmptyString(o.uriTemplate) ?? '').map((name) => ({ name, required: true })) })),
    ...resources.map((o): CatalogEntry => ({ ...common(o), kind: 'resource', uri: nonEmptyString(o.uri) ?? '' })),
  ];
}

/** templateVariables returns the names of the variables of a URI template (RFC 6570). */
export function templateVariables(template: string): string[] {
  const names = [...template.matchAll(/\{[+#./;?&]?([^}]+)\}/g)].flatMap((m) => m[1]!.split(',').map((v) => v.replace(/(\*|:\d+)$/, '').trim()));
  return [...new Set(names.filter(Boolean))];
}

/** expandTemplate expands a URI template (RFC 6570); variables without a value are omitted. */
export function expandTemplate(template: string, values: Record<string, string>): string {
  return template.replace(/\{([+#./;?&]?)([^}]+)\}/g, (_, operator: string, list: string) => {
    const keepReserved = operator === '+' || operator === '#';
    const encode = (v: string) => (keepReserved ? encodeURI(v) : encodeURIComponent(v));
    const names = list
      .split(',')
      .map((v) => v.replace(/(\*|:\d+)$/, '').trim())
      .filter((v) => values[v]);
    if (names.length === 0) return '';
    const named = operator === '?' || operator === '&' || operator === ';';
    const separator = operator === '?' || operator === '&' ? '&' : operator === '' || operator === '+' || operator === '#' ? ',' : operator;
    const first = operator === '+' ? '' : operator;
    return first + names.map((v) => (named ? `${v}=${encode(values[v]!)}` : encode(values[v]!))).join(separator);
  });
}

/** completeArgument returns the values that a server suggests for an argument (completion/complete). */
export async function completeArgument(entry: CatalogEntry, name: string, value: string, others: Record<string, string>, signal: AbortSignal): Promise<string[]> {
  const ref = entry.kind === 'prompt' ? { type: 'ref/prompt', name: entry.name } : { type: 'ref/resource', uri: entry.uri };
  const { [name]: _, ...rest } = others;
  const result = await mcpRequest<{ completion?: { values?: unknown[] } }>(entry.server, 'completion/complete', { ref, argument: { name, value }, ...(Object.keys(rest).length > 0 && { context: { arguments: rest } }) }, signal);
  return (result.completion?.values ?? []).filter((v): v is string => typeof v === 'string').slice(0, 100);
}

export interface PromptMessage {
  role: string;
  content: { type?: string; text?: string; resource?: { text?: string; uri?: string } } | undefined;
}

/** promptText returns the messages of a prompt as one text, for a draft. */
export function promptText(messages: PromptMessage[]): string {
  const withText = messages.map((m) => ({ role: m.role, text: m.content?.text ?? m.content?.resource?.text ?? '' })).filter((m) => m.text.trim() !== '');
  if (withText.every((m) => m.role === 'user')) return withText.map((m) => m.text).join('\n\n');
  return withText.map((m) => `${m.role === 'user' ? 'User' : 'Assistant'}: ${m.text}`).join('\n\n');
}
