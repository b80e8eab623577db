// Arguments on their way to the form of a tool.
import { href } from '../lib/use';

/** Arguments up to this length are part of an address; longer ones are kept in the tab's storage. */
const inAddress = 2000;
const prefix = 'junctor.args.';
/** How many arguments are kept. */
const kept = 20;

/** openTool returns the address of a tool's form with arguments, which it keeps whole whatever their length. */
export function openTool(server: string, tool: string, args: unknown): string {
  const text = JSON.stringify(args ?? {});
  return href(['tools', server, tool], text.length <= inAddress ? { args: text } : { kept: keep(text) });
}

/** keep stores a text in the tab under a key made from it, and forgets the oldest. */
export function keep(text: string): string {
  const key = digest(text);
  try {
    const keys = Object.keys(sessionStorage).filter((k) => k.startsWith(prefix) && k !== prefix + key);
    const oldest = keys.sort((a, b) => age(a) - age(b));
    for (const k of oldest.slice(0, Math.max(0, keys.length - kept + 1))) sessionStorage.removeItem(k);
    sessionStorage.setItem(prefix + key, JSON.stringify({ at: Date.now(), text }));
  } catch {
    // Without room the form begins empty.
  }
  return key;
}

function age(key: string): number {
  try {
    return Number((JSON.parse(sessionStorage.getItem(key) ?? '{}') as { at?: number }).at ?? 0);
  } catch {
    return 0;
  }
}

/** digest is FNV-1a over two halves: enough to tell a tab's arguments apart. */
function digest(text: string): string {
  let a = 0x811c9dc5;
  let b = 0x01000193;
  for (let i = 0; i < text.length; i++) {
    a = Math.imul(a ^ text.charCodeAt(i), 0x01000193);
    b = Math.imul(b + text.charCodeAt(i), 0x5bd1e995) ^ (b >>> 15);
  }
  return (a >>> 0).toString(36) + (b >>> 0).toString(36) + text.length.toString(36);
}

/** argumentsOf returns the arguments that an address carries or names; undefined if there are none. */
export function argumentsOf(query: URLSearchParams): Record<string, unknown> | undefined {
  let text = query.get('args') ?? '';
  const key = query.get('kept');
  if (!text && key) {
    try {
      text = (JSON.parse(sessionStorage.getItem(prefix + key) ?? '{}') as { text?: string }).text ?? '';
    } catch {
      // Gone with the tab that kept it.
    }
  }
  return text ? parseArguments(text).value : undefined;
}

/** parseArguments reads arguments written as JSON. */
export function parseArguments(text: string): { value?: Record<string, unknown>; error?: string } {
  try {
    const value: unknown = JSON.parse(text.trim() || '{}');
    if (value === null || typeof value !== 'object' || Array.isArray(value)) return { error: 'The arguments must be a JSON object.' };
    return { value: value as Record<string, unknown> };
  } catch (e) {
    return { error: e instanceof Error ? e.message : String(e) };
  }
}
