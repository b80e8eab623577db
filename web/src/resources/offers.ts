// The resources, templates and prompts of the servers.
import { ApiError, send } from '../lib/api';

export interface Argument {
  name: string;
  description?: string;
  required?: boolean;
}

export interface Offer {
  server: string;
  kind: 'resource' | 'template' | 'prompt';
  name: string;
  title?: string;
  description?: string;
  /** Of a resource, or the template of its URI. */
  uri?: string;
  mimeType?: string;
  arguments?: Argument[];
}

/** ask makes an MCP request of a server. */
export async function ask<T>(server: string, method: string, params: unknown, signal?: AbortSignal): Promise<T> {
  return (await send<{ result: T }>('POST', `/api/servers/${encodeURIComponent(server)}/request`, { method, params }, signal)).result;
}

/** maxPages bounds how much is listed of one server. */
const maxPages = 10;

type Raw = Record<string, unknown>;

async function all(server: string, method: string, key: string, signal: AbortSignal): Promise<Raw[]> {
  const out: Raw[] = [];
  let cursor: unknown;
  for (let page = 0; page < maxPages; page++) {
    let result: Raw;
    try {
      result = await ask<Raw>(server, method, cursor === undefined ? {} : { cursor }, signal);
    } catch (e) {
      if (e instanceof ApiError && e.status !== 0) return out; // most servers have none of one kind
      throw e;
    }
    if (Array.isArray(result[key])) out.push(...(result[key] as Raw[]));
    cursor = result.nextCursor;
    if (typeof cursor !== 'string' || cursor === '') break;
  }
  return out;
}

const text = (v: unknown) => (typeof v === 'string' && v !== '' ? v : undefined);

/** offersOf lists what a server has. */
export async function offersOf(server: string, signal: AbortSignal): Promise<Offer[]> {
  const [resources, templates, prompts] = await Promise.all([
    all(server, 'resources/list', 'resources', signal),
    all(server, 'resources/templates/list', 'resourceTemplates', signal),
    all(server, 'prompts/list', 'prompts', signal),
  ]);
  const common = (o: Raw) => ({ server, name: text(o.name) ?? text(o.uri) ?? '', title: text(o.title), description: text(o.description), mimeType: text(o.mimeType) });
  return [
    ...prompts.map((o): Offer => ({ ...common(o), kind: 'prompt', arguments: Array.isArray(o.arguments) ? (o.arguments as Argument[]) : [] })),
    ...templates.map((o): Offer => ({ ...common(o), kind: 'template', uri: text(o.uriTemplate) ?? '', arguments: variables(text(o.uriTemplate) ?? '').map((name) => ({ name, required: true })) })),
    ...resources.map((o): Offer => ({ ...common(o), kind: 'resource', uri: text(o.uri) ?? '' })),
  ];
}

/** variables returns the names of the variables of a URI template (RFC 6570). */
export function variables(template: string): string[] {
  const names = [...template.matchAll(/\{[+#./;?&]?([^}]+)\}/g)].flatMap((m) => m[1]!.split(',').map((v) => v.replace(/(\*|:\d+)$/, '').trim()));
  return [...new Set(names.filter(Boolean))];
}

/** expand fills the variables of a URI template in; what has no value is left out. */
export function expand(template: string, values: Record<string, string>): string {
  return template.replace(/\{([+#./;?&]?)([^}]+)\}/g, (_, operator: string, list: string) => {
    const keep = operator === '+' || operator === '#';
    const encode = (v: string) => (keep ? encodeURI(v) : encodeURIComponent(v));
    const given = list
      .split(',')
      .map((v) => v.replace(/(\*|:\d+)$/, '').trim())
      .filter((v) => values[v]);
    if (given.length === 0) return '';
    const named = operator === '?' || operator === '&' || operator === ';';
    const separator = operator === '?' || operator === '&' ? '&' : operator === '' || operator === '+' || operator === '#' ? ',' : operator;
    const first = operator === '+' ? '' : operator;
    return first + given.map((v) => (named ? `${v}=${encode(values[v]!)}` : encode(values[v]!))).join(separator);
  });
}

/** complete returns the values that a server proposes for an argument. */
export async function complete(offer: Offer, name: string, value: string, others: Record<string, string>, signal: AbortSignal): Promise<string[]> {
  const ref = offer.kind === 'prompt' ? { type: 'ref/prompt', name: offer.name } : { type: 'ref/resource', uri: offer.uri };
  const { [name]: _, ...rest } = others;
  const result = await ask<{ completion?: { values?: unknown[] } }>(offer.server, 'completion/complete', { ref, argument: { name, value }, ...(Object.keys(rest).length > 0 && { context: { arguments: rest } }) }, signal);
  return (result.completion?.values ?? []).filter((v): v is string => typeof v === 'string').slice(0, 100);
}

export interface PromptMessage {
  role: string;
  content: { type?: string; text?: string; resource?: { text?: string; uri?: string } } | undefined;
}

/** asDraft returns the messages of a prompt as the text of a first message. */
export function asDraft(messages: PromptMessage[]): string {
  const told = messages.map((m) => ({ role: m.role, text: m.content?.text ?? m.content?.resource?.text ?? '' })).filter((m) => m.text.trim() !== '');
  if (told.every((m) => m.role === 'user')) return told.map((m) => m.text).join('\n\n');
  return told.map((m) => `${m.role === 'user' ? 'User' : 'Assistant'}: ${m.text}`).join('\n\n');
}
