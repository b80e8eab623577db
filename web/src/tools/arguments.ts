// Links to the form of a tool with arguments.
import { href } from '../lib/use';

/** maxUrlLength is the length of arguments above which they are kept in sessionStorage and not in the URL. */
const maxUrlLength = 2000;
const storagePrefix = 'junctor.args.';
/** maxStored is the number of arguments kept in sessionStorage. */
const maxStored = 20;

/** toolHref returns the URL of a tool's form with arguments of any length. */
export function toolHref(server: string, tool: string, args: unknown): string {
  const text = JSON.stringify(args ?? {});
  return href(['tools', server, tool], text.length <= maxUrlLength ? { args: text } : { kept: storeArguments(text) });
}

/** storeArguments stores a text in sessionStorage under its digest, removes the oldest, and returns the key. */
export function storeArguments(text: string): string {
  const key = digest(text);
  try {
    const keys = Object.keys(sessionStorage).filter((k) => k.startsWith(storagePrefix) && k !== storagePrefix + key);
    const oldest = keys.sort((a, b) => storedAt(a) - storedAt(b));
    for (const k of oldest.slice(0, Math.max(0, keys.length - maxStored + 1))) sessionStorage.removeItem(k);
    sessionStorage.setItem(storagePrefix + key, JSON.stringify({ at: Date.now(), text }));
  } catch {
    // If storage is full, the form starts empty.
  }
  return key;
}

function storedAt(key: string): number {
  try {
    return Number((JSON.parse(sessionStorage.getItem(key) ?? '{}') as { at?: number }).at ?? 0);
  } catch {
    return 0;
  }
}

/** digest is FNV-1a over two halves: enough to distinguish the arguments of one tab. */
function digest(text: string): string {
  let a = 0x811c9dc5;
  let b = 0x01000193;
  for (let i = 0; i < text.length; i++) {
    a = Math.imul(a ^ text.charCodeAt(i), 0x01000193);
    b = Math.imul(b + text.charCodeAt(i), 0x5bd1e995) ^ (b >>> 15);
  }
  return (a >>> 0).toString(36) + (b >>> 0).toString(36) + text.length.toString(36);
}

/** argumentsFromQuery returns the arguments in a URL, or stored under the key in it; undefined if there are none. */
export function argumentsFromQuery(query: URLSearchParams): Record<string, unknown> | undefined {
  let text = query.get('args') ?? '';
  const key = query.get('kept');
  if (!text && key) {
    try {
      text = (JSON.parse(sessionStorage.getItem(storagePrefix + key) ?? '{}') as { text?: string }).text ?? '';
    } catch {
      // Stored in another tab.
    }
  }
  return text ? parseArguments(text).value : undefined;
}

/** parseArguments parses arguments from JSON. */
export function parseArguments(text: string): { value?: Record<string, unknown>; error?: string } {
  try {
    const value: unknown = JSON.parse(text.trim() || '{}');
    if (value === null || typeof value !== 'object' || Array.isArray(value)) return { error: 'The arguments must be a JSON object.' };
    return { value: value as Record<string, unknown> };
  } catch (e) {
    return { error: e instanceof Error ? e.message : String(e) };
  }
}
