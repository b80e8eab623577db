// Preparation of JSON schemas for forms.
import type { RJSFSchema, UiSchema } from '@rjsf/utils';

/** uiFor chooses widgets: a text area for strings that are usually long, and checkboxes for short lists of choices. */
export function uiFor(schema: RJSFSchema): UiSchema {
  const out: UiSchema = { 'ui:submitButtonOptions': { norender: true } };
  for (const [name, raw] of Object.entries(schema.properties ?? {})) {
    const p = raw as RJSFSchema;
    if (p?.type === 'string' && !p.enum && !p.format && /^(content|text|body|message|prompt|query|code|sql|description|markdown|html|script|data)$/i.test(name)) {
      out[name] = { 'ui:widget': 'textarea', 'ui:options': { rows: 3 } };
    }
    if (p?.type === 'array' && p.uniqueItems && choices(p.items as RJSFSchema)) out[name] = { 'ui:widget': 'checkboxes' };
  }
  return out;
}

/** choices reports whether a schema is a choice among a few values. */
export function choices(s: RJSFSchema | undefined): boolean {
  const of = s?.oneOf ?? s?.anyOf;
  const n = s?.enum?.length ?? (Array.isArray(of) && of.every((o) => typeof o === 'object' && 'const' in o) ? of.length : 0);
  return n > 0 && n <= 20;
}

/** maxExpanded bounds the subschemas of a form, each reference followed. Real tools stay below a tenth of it. */
const maxExpanded = 20_000;
/** maxDepth bounds how deep subschemas and references go into one another, so that no walk overflows the stack. */
const maxDepth = 400;

/**
 * tooCostly reports whether a schema has more subschemas than a form can walk
 * when its references are followed: thirty levels of two references each are
 * a billion. A reference inside itself is followed once.
 */
export function tooCostly(schema: Record<string, unknown>): boolean {
  let left = maxExpanded;
  const open = new Set<string>();
  const walk = (node: unknown, depth = 0): boolean => {
    if (node === null || typeof node !== 'object') return true;
    if (--left < 0 || depth > maxDepth) return false;
    const ref = (node as { $ref?: unknown }).$ref;
    if (typeof ref === 'string' && !open.has(ref)) {
      open.add(ref);
      const ok = walk(resolve(schema, ref), depth + 1);
      open.delete(ref);
      if (!ok) return false;
    }
    for (const [key, value] of Object.entries(node)) {
      if (key !== '$defs' && key !== 'definitions' && !walk(value, depth + 1)) return false;
    }
    return true;
  };
  return !walk(schema);
}

/** resolve returns what a reference inside the schema points to. */
export function resolve(schema: unknown, ref: string): unknown {
  if (ref !== '#' && !ref.startsWith('#/')) return undefined;
  let at: unknown = schema;
  for (const part of ref.slice(1).split('/').slice(1)) {
    if (at === null || typeof at !== 'object') return undefined;
    at = (at as Record<string, unknown>)[decodePart(part)];
  }
  return at;
}

function decodePart(part: string): string {
  try {
    part = decodeURIComponent(part);
  } catch {
    // A percent sign that encodes nothing stands for itself.
  }
  return part.replaceAll('~1', '/').replaceAll('~0', '~');
}
