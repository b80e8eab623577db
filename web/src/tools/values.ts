// The initial value of a form, and the value that is sent.
import { nullable, typeName } from './prepare';
import { resolvePointer } from './schema';

type JsonObject = Record<string, unknown>;

function isObject(v: unknown): v is JsonObject {
  return v !== null && typeof v === 'object' && !Array.isArray(v);
}

/** initialValue returns the arguments of an untouched form: its defaults, constants and fields that are always sent. */
export function initialValue(prepared: JsonObject): JsonObject {
  const v = initialOf(prepared, prepared, true, []);
  return isObject(v) ? v : {};
}

function initialOf(raw: unknown, root: JsonObject, required: boolean, open: string[]): unknown {
  if (!isObject(raw)) return undefined;
  let s = raw;
  if (typeof s.$ref === 'string') {
    const target = resolvePointer(root, s.$ref);
    if (open.includes(s.$ref) || !isObject(target)) return undefined;
    open = [...open, s.$ref];
    const { $ref: _, ...rest } = s;
    s = { ...target, ...rest };
  }
  if ('const' in s) return s.const;
  if (s.default !== undefined && isValidDefault(s, s.default)) return structuredClone(s.default);
  if (!required) return optionalObject(s, root, open);
  if (s[nullable]) return null;
  const variants = unionVariants(s);
  if (s.type === 'boolean' && !s.enum && !s.oneOf) return false; // an unchecked checkbox means false, not unset
  const own = objectFields(s, root, open);
  if (!variants) return own;
  const first = initialOf(variants[0], root, true, open);
  return isObject(first) ? { ...own, ...first } : (own ?? first);
}

function objectFields(s: JsonObject, root: JsonObject, open: string[]): JsonObject | undefined {
  const parts = [s, ...(Array.isArray(s.allOf) ? s.allOf : [])].filter(isObject);
  let out: JsonObject | undefined = s.type === 'object' && !s['x-json'] ? {} : undefined;
  for (const part of parts) {
    const target = part !== s && typeof part.$ref === 'string' ? resolvePointer(root, part.$ref) : part;
    if (!isObject(target) || !isObject(target.properties)) continue;
    const required = Array.isArray(target.required) ? target.required : [];
    for (const [name, p] of Object.entries(target.properties)) {
      const v = initialOf(p, root, required.includes(name), open);
      if (v !== undefined) out = { ...out, [name]: v };
    }
    out ??= {};
  }
  return out;
}

/** optionalObject returns the defaults inside an object that may be left out, if they are all that it requires. */
function optionalObject(s: JsonObject, root: JsonObject, open: string[]): JsonObject | undefined {
  if (!isObject(s.properties) || s[nullable] || unionVariants(s)) return undefined;
  const own = objectFields(s, root, open);
  const required = Array.isArray(s.required) ? (s.required as string[]) : [];
  const props = s.properties;
  const chosen = own && Object.keys(own).some((k) => isObject(props[k]) && !('const' in (props[k] as JsonObject)) && !required.includes(k));
  return chosen && required.every((k) => own[k] !== undefined) ? own : undefined;
}

function unionVariants(s: JsonObject): unknown[] | undefined {
  const of = s.oneOf ?? s.anyOf;
  return Array.isArray(of) && !of.every((o) => isObject(o) && 'const' in o) ? of : undefined;
}

/** isValidDefault reports whether a default has the type of its schema and is one of its choices. */
function isValidDefault(s: JsonObject, v: unknown): boolean {
  if (Array.isArray(s.enum) && !s.enum.includes(v)) return false;
  if (Array.isArray(s.oneOf) && !unionVariants(s)) return s.oneOf.some((o) => isObject(o) && o.const === v);
  const type = typeName(s['x-json'] ?? s.type);
  if (type === undefined || s.enum) return true;
  if (type === 'array') return Array.isArray(v);
  if (type === 'object') return isObject(v);
  if (type === 'integer') return Number.isInteger(v);
  return typeof v === type;
}

/** withNewItems adds the defaults to list items that are in after and not in before, two values of a form. */
export function withNewItems(prepared: JsonObject, before: unknown, after: unknown): unknown {
  return fillNewItems(prepared, prepared, before, after, 0);
}

function fillNewItems(raw: unknown, root: JsonObject, before: unknown, after: unknown, depth: number): unknown {
  const s = deref(raw, root);
  if (before === after || depth > 200) return after;
  if (Array.isArray(after)) {
    const old = Array.isArray(before) ? before : [];
    return after.map((v, i) => {
      if (i < old.length) return fillNewItems(s.items, root, old[i], v, depth + 1);
      const newItem = Array.isArray(s.items) ? undefined : initialOf(s.items, root, true, []);
      return v === undefined ? newItem : isObject(v) && isObject(newItem) ? { ...newItem, ...v } : v;
    });
  }
  if (!isObject(after) || !isObject(s.properties)) return after;
  const out: JsonObject = { ...after };
  for (const [k, p] of Object.entries(s.properties)) if (k in after) out[k] = fillNewItems(p, root, isObject(before) ? before[k] : undefined, after[k], depth + 1);
  return out;
}

/** deref returns a schema merged with the target of its $ref. */
function deref(raw: unknown, root: JsonObject): JsonObject {
  if (!isObject(raw)) return {};
  const { $ref: ref, ...rest } = raw;
  const target = typeof ref === 'string' ? resolvePointer(root, ref) : undefined;
  return isObject(target) ? { ...target, ...rest } : raw;
}

/**
 * valueToSend returns the arguments to send for the value of a form. Empty fields are
 * omitted, or null if the schema requires them and allows null; so are
 * optional objects without any value.
 */
export function valueToSend(prepared: JsonObject, value: unknown): unknown {
  return cleanValue(prepared, prepared, value, true, 0);
}

function cleanValue(raw: unknown, root: JsonObject, value: unknown, required: boolean, depth: number): unknown {
  const s = deref(raw, root);
  if (value === undefined) return required && s[nullable] ? null : undefined;
  if (depth > 200) return value;
  if (Array.isArray(value)) {
    const item = (i: number) => (Array.isArray(s.items) ? (s.items[i] ?? s.additionalItems) : s.items);
    return value.map((v, i) => {
      const it = item(i);
      return v === undefined && isObject(it) && it.type === 'string' && !it.enum && !it.oneOf ? '' : cleanValue(it, root, v, true, depth + 1);
    });
  }
  if (!isObject(value)) return value;
  const props = isObject(s.properties) ? s.properties : {};
  const names = Array.isArray(s.required) ? (s.required as unknown[]) : [];
  const out: JsonObject = {};
  for (const k of new Set([...Object.keys(value), ...names.filter((n): n is string => typeof n === 'string' && n in props)])) {
    const v = cleanValue(props[k], root, value[k], names.includes(k), depth + 1);
    if (v !== undefined) out[k] = v;
  }
  if (!required && Object.keys(value).length > 0 && Object.keys(out).length === 0) return undefined;
  return out;
}
