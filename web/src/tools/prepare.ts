// Rewrites a tool's schema into one that the form library shows well. Values
// are validated against the tool's own schema, so this one only has to lead to
// the right fields.
import type { RJSFSchema } from '@rjsf/utils';
import { choices, resolve } from './schema';

type Node = Record<string, unknown>;

/** nullable marks a field that takes null: empty means null where the field is required. */
export const nullable = 'x-nullable';
/** jsonType names the type that a value written as JSON must have. */
export const jsonType = 'x-json';

/** prepare returns the schema of the form for a tool's arguments, which are an object in any case. */
export function prepare(schema: Record<string, unknown>): RJSFSchema {
  const { $schema: _, $id: __, ...rest } = schema;
  const out: Node = { ...descend(schema, { type: 'object', ...rest }), type: 'object' };
  delete out.default;
  dropDanglingRefs(out, out);
  return out as RJSFSchema;
}

function isObject(v: unknown): v is Node {
  return v !== null && typeof v === 'object' && !Array.isArray(v);
}

/** Names of types as some Python servers write them. */
const aliases: Record<string, string> = { str: 'string', int: 'integer', float: 'number', double: 'number', bool: 'boolean', dict: 'object', list: 'array', tuple: 'array', set: 'array', None: 'null', NoneType: 'null' };
const types = new Set(['string', 'integer', 'number', 'boolean', 'object', 'array', 'null']);

export function typeName(t: unknown): string | undefined {
  const name = typeof t === 'string' ? (aliases[t] ?? t) : undefined;
  return name !== undefined && types.has(name) ? name : undefined;
}

/** field prepares the schema of one value. */
function field(root: Node, raw: unknown, required: boolean): Node {
  if (!isObject(raw)) return { description: '' }; // true, or no schema: any value
  let p: Node = { ...raw };
  delete p.$id;
  if ('const' in p) return p;
  if (typeof p.$ref === 'string' && target(root, p.$ref) === undefined) delete p.$ref;
  p = namedChoices(withoutNull(p));
  if (p.default === null) delete p.default;
  if (Array.isArray(p.type)) {
    const { type, title, description, default: initial, ...rest } = p;
    const names = (type as unknown[]).map(typeName).filter((t) => t !== undefined);
    if (names.length === 1) p.type = names[0];
    else p = { ...(title !== undefined && { title }), ...(description !== undefined && { description }), ...(initial !== undefined && { default: initial }), [nullable]: p[nullable], anyOf: names.map((t) => ({ ...rest, type: t })) };
  } else if ('type' in p) {
    const name = typeName(p.type);
    if (name) p.type = name;
    else delete p.type;
  }
  const variants = options(p);
  if (variants) {
    if (isSelect(p)) return { ...p, type: p.type ?? 'string' };
    return union(root, p, variants, required);
  }
  if (p.type === 'boolean' && p[nullable] && !p.enum) {
    // Three states: yes, no and nothing.
    return { ...p, type: 'string', oneOf: [{ const: true, title: 'Yes' }, { const: false, title: 'No' }] };
  }
  if (freeForm(p)) {
    const { type, items: _, additionalProperties: __, ...rest } = p;
    return { description: '', ...rest, ...(type !== undefined && { [jsonType]: type }) };
  }
  return descend(root, p);
}

/** freeForm reports whether no fields can be made of a schema, so that its value is written as JSON. */
function freeForm(p: Node): boolean {
  if (p.$ref || p.allOf || p.enum || p.if) return false;
  const has = (o: unknown) => isObject(o) && Object.keys(o).length > 0;
  if (p.type === 'object' || (p.type === undefined && (p.properties || p.additionalProperties))) return !has(p.properties) && !has(p.additionalProperties);
  if (p.type === 'array') return !has(p.items) && !(Array.isArray(p.items) && p.items.length > 0) && !(Array.isArray(p.prefixItems) && p.prefixItems.length > 0);
  return p.type === undefined;
}

/** descend prepares what is inside a schema. */
function descend(root: Node, p: Node): Node {
  const variants = options(p);
  if (variants) return union(root, p, variants, true);
  const out = { ...p };
  if ('required' in out && !Array.isArray(out.required)) delete out.required;
  const required = (out.required as unknown[] | undefined) ?? [];
  if (isObject(out.properties)) {
    out.properties = Object.fromEntries(
      Object.entries(out.properties)
        .filter(([, v]) => v !== false)
        .map(([name, v]) => [name, field(root, v, required.includes(name))]),
    );
  } else delete out.properties;
  // A list of positions as the draft of 2020 writes it.
  if (Array.isArray(out.prefixItems)) {
    if (isObject(out.items)) out.additionalItems = out.items;
    out.items = out.prefixItems;
    delete out.prefixItems;
  }
  if (Array.isArray(out.items)) out.items = out.items.map((v) => field(root, v, true));
  else if (isObject(out.items)) out.items = field(root, out.items, true);
  if (isObject(out.additionalItems)) out.additionalItems = field(root, out.additionalItems, true);
  if (isObject(out.additionalProperties)) out.additionalProperties = field(root, out.additionalProperties, true);
  if (Array.isArray(out.allOf)) out.allOf = out.allOf.filter(isObject).map((v) => descend(root, v));
  for (const key of ['$defs', 'definitions']) {
    const defs = out[key];
    if (isObject(defs)) out[key] = Object.fromEntries(Object.entries(defs).map(([name, v]) => [name, field(root, v, true)]));
  }
  // Choosing the same twice means nothing; without this it would be a list to add to.
  if (out.type === 'array' && out.uniqueItems === undefined && choices(out.items as RJSFSchema)) out.uniqueItems = true;
  return out;
}

function options(p: Node): Node[] | undefined {
  const of = p.oneOf ?? p.anyOf;
  return Array.isArray(of) ? of.filter(isObject) : undefined;
}

function isSelect(p: Node): boolean {
  const of = options(p);
  return of !== undefined && of.length > 0 && of.every((o) => 'const' in o || (Array.isArray(o.enum) && o.enum.length === 1));
}

/** union prepares a choice among schemas, and gives each a name to choose it by. */
function union(root: Node, p: Node, variants: Node[], required: boolean): Node {
  const { oneOf: _, anyOf: __, ...rest } = p;
  // Combinations of required fields: validation reports them, and there is nothing to choose.
  const real = variants.filter((v) => Object.keys(v).some((k) => !['required', 'not', 'title', 'description', '$comment'].includes(k)));
  if (real.length === 0) return rest.type === undefined && !rest.properties && freeForm(rest) ? { description: '', ...rest } : descend(root, rest);
  if (real.length === 1 && !rest.properties) return { ...field(root, rest.type === undefined ? real[0] : { type: rest.type, ...real[0] }, required), ...rest };
  const seen = new Map<string, number>();
  const named = real.map((v) => {
    const typed = rest.type === undefined || v.type !== undefined || v.$ref ? v : { type: rest.type, ...v };
    const title = nameOf(root, v);
    const n = (seen.get(title) ?? 0) + 1;
    seen.set(title, n);
    return { ...field(root, typed, true), title: n > 1 ? `${title} (${n})` : title };
  });
  const none = { type: 'null', title: p[nullable] ? 'None' : 'Not set' };
  const all = p[nullable] || (!required && p.default === undefined) ? [none, ...named] : named;
  const { type, ...outer } = rest;
  // Only objects have fields of their own beside the choice.
  return { ...(type === 'object' || rest.properties ? descend(root, rest) : outer), [p.oneOf ? 'oneOf' : 'anyOf']: all };
}

const typeNames: Record<string, string> = { string: 'Text', integer: 'Whole number', number: 'Number', boolean: 'Yes or no', object: 'Object', array: 'List' };

/** nameOf names one schema of a choice: its title, the constant that tells it from the others, or its type. */
function nameOf(root: Node, v: Node): string {
  const referred = typeof v.$ref === 'string' ? target(root, v.$ref) : undefined;
  const s: Node = referred ? { ...referred, ...v } : v;
  if (typeof v.title === 'string' && v.title) return v.title;
  const constant = Object.values(isObject(s.properties) ? s.properties : {}).flatMap((q) => (isObject(q) && typeof q.const === 'string' ? [q.const] : isObject(q) && Array.isArray(q.enum) && q.enum.length === 1 ? [String(q.enum[0])] : []))[0];
  if (constant) return constant;
  if (typeof s.title === 'string' && s.title) return s.title;
  if (typeof v.$ref === 'string') return v.$ref.split('/').at(-1) || 'Value';
  if ('const' in s) return JSON.stringify(s.const);
  if (Array.isArray(s.enum)) return s.enum.slice(0, 3).map(String).join(', ') + (s.enum.length > 3 ? ', …' : '');
  const type = typeName(Array.isArray(s.type) ? s.type[0] : s.type) ?? (s.properties ? 'object' : undefined);
  if (type === 'array' && isObject(s.items) && typeNames[typeName(s.items.type) ?? '']) return `List: ${typeNames[typeName(s.items.type) ?? '']!.toLowerCase()}`;
  return typeNames[type ?? ''] ?? 'JSON';
}

const onlyNull = (v: unknown) => isObject(v) && (typeName(v.type) === 'null' || ('const' in v && v.const === null) || (Array.isArray(v.enum) && v.enum.length === 1 && v.enum[0] === null));

/** withoutNull takes null out of a schema's types and marks the schema nullable instead. */
function withoutNull(p: Node): Node {
  if (Array.isArray(p.type) && p.type.length > 1 && p.type.some((t) => typeName(t) === 'null')) p = { ...p, type: p.type.filter((t) => typeName(t) !== 'null'), [nullable]: true };
  if (p.nullable === true) p = { ...p, [nullable]: true };
  if (Array.isArray(p.enum) && p.enum.length > 1 && p.enum.includes(null)) p = { ...p, enum: p.enum.filter((v) => v !== null), [nullable]: true };
  for (const key of ['anyOf', 'oneOf'] as const) {
    const of = p[key];
    if (!Array.isArray(of) || !of.some(onlyNull)) continue;
    const left = of.filter((v) => !onlyNull(v));
    const { [key]: _, ...rest } = p;
    if (left.length === 1 && isObject(left[0])) p = { ...withoutNull(left[0]), ...rest, [nullable]: true };
    else if (left.length > 1) p = { ...rest, [key]: left, [nullable]: true };
  }
  return p;
}

/** namedChoices turns enumNames, and values that have no short text, into choices with titles. */
function namedChoices(p: Node): Node {
  if (!Array.isArray(p.enum)) return p;
  const { enum: values, enumNames: names, ...rest } = p as Node & { enum: unknown[] };
  if (values.length === 0) return rest;
  const distinct = [...new Map(values.map((v) => [JSON.stringify(v), v])).values()];
  if (Array.isArray(names)) return { ...rest, oneOf: values.map((v, i) => ({ const: v, title: String(names[i] ?? v) })) };
  if (distinct.some((v) => typeof v === 'object' || new Set(distinct.map(String)).size < distinct.length)) return { ...rest, type: 'string', oneOf: distinct.map((v) => ({ const: v, title: JSON.stringify(v) })) };
  return { ...p, enum: distinct };
}

/** target returns the schema that a reference leads to, over other references, unless it leads nowhere or back to itself. */
function target(root: Node, ref: string): Node | undefined {
  const seen = new Set<string>();
  for (;;) {
    const at = resolve(root, ref);
    if (!isObject(at) || seen.has(ref)) return undefined;
    if (typeof at.$ref !== 'string') return at;
    seen.add(ref);
    ref = at.$ref;
  }
}

/** dropDanglingRefs removes references to what the rewriting has moved; their values are written as JSON. */
function dropDanglingRefs(root: Node, at: unknown) {
  if (Array.isArray(at)) for (const v of at) dropDanglingRefs(root, v);
  if (!isObject(at)) return;
  if (typeof at.$ref === 'string' && !target(root, at.$ref)) {
    delete at.$ref;
    at.description ??= '';
  }
  for (const [key, v] of Object.entries(at)) if (!['default', 'enum', 'const', 'examples'].includes(key)) dropDanglingRefs(root, v);
}
