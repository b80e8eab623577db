// Preparation of JSON schemas for forms.
import type { RJSFSchema, UiSchema } from '@rjsf/utils';

/** uiSchemaFor chooses widgets: a text area for strings that are usually long, and checkboxes for short lists of choices. */
export function uiSchemaFor(schema: RJSFSchema): UiSchema {
  const out: UiSchema = { 'ui:submitButtonOptions': { norender: true } };
  for (const [name, raw] of Object.entries(schema.properties ?? {})) {
    const p = raw as RJSFSchema;
    if (p?.type === 'string' && !p.enum && !p.format && /^(content|text|body|message|prompt|query|code|sql|description|markdown|html|script|data)$/i.test(name)) {
      out[name] = { 'ui:widget': 'textarea', 'ui:options': { rows: 3 } };
    }
    if (p?.type === 'array' && p.uniqueItems && isChoice(p.items as RJSFSchema)) out[name] = { 'ui:widget': 'checkboxes' };
  }
  return out;
}

/** isChoice reports whether a schema is a choice among a few values. */
export function isChoice(s: RJSFSchema | undefined): boolean {
  const of = s?.oneOf ?? s?.anyOf;
  const n = s?.enum?.length ?? (Array.isArray(of) && of.every((o) => typeof o === 'object' && 'const' in o) ? of.length : 0);
  return n > 0 && n <= 20;
}

/** maxSubschemas bounds the subschemas of a form with all references followed. Real tools stay below a tenth of it. */
const maxSubschemas = 20_000;
/** maxDepth bounds the nesting of subschemas and references, so that no walk overflows the stack. */
const maxDepth = 400;

/**
 * isTooComplex reports whether a schema has more subschemas than a form can walk
 * when its references are followed: thirty levels of two references each are
 * a billion. A reference inside itself is followed once.
 */
export function isTooComplex(schema: Record<string, unknown>): boolean {
  let remaining = maxSubschemas;
  const openRefs = new Set<string>();
  const walk = (node: unknown, depth = 0): boolean => {
    if (node === null || typeof node !== 'object') return true;
    if (--remaining < 0 || depth > maxDepth) return false;
    const ref = (node as { $ref?: unknown }).$ref;
    if (typeof ref === 'string' && !openRefs.has(ref)) {
      openRefs.add(ref);
      const ok = walk(resolvePointer(schema, ref), depth + 1);
      openRefs.delete(ref);
      if (!ok) return false;
    }
    for (const [key, value] of Object.entries(node)) {
      if (key !== '$defs' && key !== 'definitions' && !walk(value, depth + 1)) return false;
    }
    return true;
  };
  return !walk(schema);
}

/** resolvePointer returns the subschema at a JSON pointer reference. */
export function resolvePointer(schema: unknown, ref: string): unknown {
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
    // An invalid percent-encoding is literal text.
  }
  return part.replaceAll('~1', '/').replaceAll('~0', '~');
}
