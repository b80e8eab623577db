// Rewrites a tool's schema into one that the form library can render. Values
// are validated against the original schema, so this one only has to produce
// the right fields.
import type { RJSFSchema } from '@rjsf/utils';
import { isChoice, resolvePointer } from './schema';

type SchemaNode = Record<string, unknown>;

/** nullable marks a field that allows null: an empty required field is sent as null. */
export const nullable = 'x-nullable';
/** jsonType has the type of a value that is entered as JSON. */
export const jsonType = 'x-json';

/** prepare returns the schema of the form for a tool's arguments, whose root is always an object. */
export function prepare(schema: Record<string, unknown>): RJSFSchema {
  const { $schema: _, $id: __, ...rest } = schema;
  const out: SchemaNode = { ...prepareSubschemas(schema, { type: 'object', ...rest }), type: 'object' };
  delete out.default;
  dropDanglingRefs(out, out);
  return out as RJSFSchema;
}

function isObject(v: unknown): v is SchemaNode {
  return v !== null && typeof v === 'object' && !Array.isArray(v);
}

/** Names of types that some Python servers use. */
const aliases: Record<string, string> = { str: 'string', int: 'integer', float: 'number', double: 'number', bool: 'boolean', dict: 'object', list: 'array', tuple: 'array', set: 'array', None: 'null', NoneType: 'null' };
const types = new Set(['string', 'integer', 'number', 'boolean', 'object', 'array', 'null']);

export function typeName(t: unknown): string | undefined {
  const name = typeof t === 'string' ? (aliases[t] ?? t) : undefined;
  return name !== undefined && types.has(name) ? name : undefined;
}

/** prepareField prepares the schema of one value. */
function prepareField(root: SchemaNode, raw: unknown, required: boolean): SchemaNode {
  if (!isObject(raw)) return { description: '' }; // true, or no schema: any value
  let p: SchemaNode = { ...raw };
  delete p.$id;
  if ('const' in p) return p;
  if (typeof p.$ref === 'string' && resolveRef(root, p.$ref) === undefined) delete p.$ref;
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
  const variants = variantsOf(p);
  if (variants) {
    if (isSelectUnion(p)) return { ...p, type: p.type ?? 'string' };
    return prepareUnion(root, p, variants, required);
  }
  if (p.type === 'boolean' && p[nullable] && !p.enum) {
    // Three states: yes, no and not set.
    return { ...p, type: 'string', oneOf: [{ const: true, title: 'Yes' }, { const: false, title: 'No' }] };
  }
  if (isFreeForm(p)) {
    const { type, items: _, additionalProperties: __, ...rest } = p;
    return { description: '', ...rest, ...(type !== undefined && { [jsonType]: type }) };
  }
  return prepareSubschemas(root, p);
}

/** isFreeForm reports whether a schema has no fields, so that its value is entered as JSON. */
function isFreeForm(p: SchemaNode): boolean {
  if (p.$ref || p.allOf || p.enum || p.if) return false;
  const has = (o: unknown) => isObject(o) && Object.keys(o).length > 0;
  if (p.type === 'object' || (p.type === undefined && (p.properties || p.additionalProperties))) return !has(p.properties) && !has(p.additionalProperties);
  if (p.type === 'array') return !has(p.items) && !(Array.isArray(p.items) && p.items.length > 0) && !(Array.isArray(p.prefixItems) && p.prefixItems.length > 0);
  return p.type === undefined;
}

/** prepareSubschemas prepares the subschemas of a schema. */
function prepareSubschemas(root: SchemaNode, p: SchemaNode): SchemaNode {
  const variants = variantsOf(p);
  if (variants) return prepareUnion(root, p, variants, true);
  const out = { ...p };
  if ('required' in out && !Array.isArray(out.required)) delete out.required;
  const required = (out.required as unknown[] | undefined) ?? [];
  if (isObject(out.properties)) {
    out.properties = Object.fromEntries(
      Object.entries(out.properties)
        .filter(([, v]) => v !== false)
        .map(([name, v]) => [name, prepareField(root, v, required.includes(name))]),
    );
  } else delete out.properties;
  // The form library supports tuples only as an array in items, as before draft 2020-12.
  if (Array.isArray(out.prefixItems)) {
    if (isObject(out.items)) out.additionalItems = out.items;
    out.items = out.prefixItems;
    delete out.prefixItems;
  }
  if (Array.isArray(out.items)) out.items = out.items.map((v) => prepareField(root, v, true));
  else if (isObject(out.items)) out.items = prepareField(root, out.items, true);
  if (isObject(out.additionalItems)) out.additionalItems = prepareField(root, out.additionalItems, true);
  if (isObject(out.additionalProperties)) out.additionalProperties = prepareField(root, out.additionalProperties, true);
  if (Array.isArray(out.allOf)) out.allOf = out.allOf.filter(isObject).map((v) => prepareSubschemas(root, v));
  for (const key of ['$defs', 'definitions']) {
    const defs = out[key];
    if (isObject(defs)) out[key] = Object.fromEntries(Object.entries(defs).map(([name, v]) => [name, prepareField(root, v, true)]));
  }
  // With uniqueItems, a list of choices is shown as checkboxes.
  if (out.type === 'array' && out.uniqueItems === undefined && isChoice(out.items as RJSFSchema)) out.uniqueItems = true;
  return out;
}

function variantsOf(p: SchemaNode): SchemaNode[] | undefined {
  const of = p.oneOf ?? p.anyOf;
  return Array.isArray(of) ? of.filter(isObject) : undefined;
}

function isSelectUnion(p: SchemaNode): boolean {
  const of = variantsOf(p);
  return of !== undefined && of.length > 0 && of.every((o) => 'const' in o || (Array.isArray(o.enum) && o.enum.length === 1));
}

/** prepareUnion prepares oneOf or anyOf, and gives each variant a title for the select. */
function prepareUnion(root: SchemaNode, p: SchemaNode, variants: SchemaNode[], required: boolean): SchemaNode {
  const { oneOf: _, anyOf: __, ...rest } = p;
  // Variants that only combine required fields are left to validation; there is nothing to choose.
  const choosable = variants.filter((v) => Object.keys(v).some((k) => !['required', 'not', 'title', 'description', '$comment'].includes(k)));
  if (choosable.length === 0) return rest.type === undefined && !rest.properties && isFreeForm(rest) ? { description: '', ...rest } : prepareSubschemas(root, rest);
  if (choosable.length === 1 && !rest.properties) return { ...prepareField(root, rest.type === undefined ? choosable[0] : { type: rest.type, ...choosable[0] }, required), ...rest };
  const seen = new Map<string, number>();
  const named = choosable.map((v) => {
    const typed = rest.type === undefined || v.type !== undefined || v.$ref ? v : { type: rest.type, ...v };
    const title = variantName(root, v);
    const n = (seen.get(title) ?? 0) + 1;
    seen.set(title, n);
    return { ...prepareField(root, typed, true), title: n > 1 ? `${title} (${n})` : title };
  });
  const none = { type: 'null', title: p[nullable] ? 'None' : 'Not set' };
  const all = p[nullable] || (!required && p.default === undefined) ? [none, ...named] : named;
  const { type, ...outer } = rest;
  // Only objects have fields besides the variants.
  return { ...(type === 'object' || rest.properties ? prepareSubschemas(root, rest) : outer), [p.oneOf ? 'oneOf' : 'anyOf']: all };
}

const typeNames: Record<string, string> = { string: 'Text', integer: 'Whole number', number: 'Number', boolean: 'Yes or no', object: 'Object', array: 'List' };

/** variantName returns the name of a variant: its title, its discriminating constant, or its type. */
function variantName(root: SchemaNode, v: SchemaNode): string {
  const referred = typeof v.$ref === 'string' ? resolveRef(root, v.$ref) : undefined;
  const s: SchemaNode = referred ? { ...referred, ...v } : v;
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

const isNullSchema = (v: unknown) => isObject(v) && (typeName(v.type) === 'null' || ('const' in v && v.const === null) || (Array.isArray(v.enum) && v.enum.length === 1 && v.enum[0] === null));

/** withoutNull removes null from a schema's types and marks the schema as nullable instead. */
function withoutNull(p: SchemaNode): SchemaNode {
  if (Array.isArray(p.type) && p.type.length > 1 && p.type.some((t) => typeName(t) === 'null')) p = { ...p, type: p.type.filter((t) => typeName(t) !== 'null'), [nullable]: true };
  if (p.nullable === true) p = { ...p, [nullable]: true };
  if (Array.isArray(p.enum) && p.enum.length > 1 && p.enum.includes(null)) p = { ...p, enum: p.enum.filter((v) => v !== null), [nullable]: true };
  for (const key of ['anyOf', 'oneOf'] as const) {
    const of = p[key];
    if (!Array.isArray(of) || !of.some(isNullSchema)) continue;
    const left = of.filter((v) => !isNullSchema(v));
    const { [key]: _, ...rest } = p;
    if (left.length === 1 && isObject(left[0])) p = { ...withoutNull(left[0]), ...rest, [nullable]: true };
    else if (left.length > 1) p = { ...rest, [key]: left, [nullable]: true };
  }
  return p;
}

/** namedChoices converts enumNames, and enum values without a short text, to oneOf with titles. */
function namedChoices(p: SchemaNode): SchemaNode {
  if (!Array.isArray(p.enum)) return p;
  const { enum: values, enumNames: names, ...rest } = p as SchemaNode & { enum: unknown[] };
  if (values.length === 0) return rest;
  const distinct = [...new Map(values.map((v) => [JSON.stringify(v), v])).values()];
  if (Array.isArray(names)) return { ...rest, oneOf: values.map((v, i) => ({ const: v, title: String(names[i] ?? v) })) };
  if (distinct.some((v) => typeof v === 'object' || new Set(distinct.map(String)).size < distinct.length)) return { ...rest, type: 'string', oneOf: distinct.map((v) => ({ const: v, title: JSON.stringify(v) })) };
  return { ...p, enum: distinct };
}

/** resolveRef returns the schema that a reference points to, following further references, or undefined if it is dangling or circular. */
function resolveRef(root: SchemaNode, ref: string): SchemaNode | undefined {
  const seen = new Set<string>();
  for (;;) {
    const at = resolvePointer(root, ref);
    if (!isObject(at) || seen.has(ref)) return undefined;
    if (typeof at.$ref !== 'string') return at;
    seen.add(ref);
    ref = at.$ref;
  }
}

/** dropDanglingRefs removes references to schemas that the rewriting has moved; their values are entered as JSON. */
function dropDanglingRefs(root: SchemaNode, at: unknown) {
  if (Array.isArray(at)) for (const v of at) dropDanglingRefs(root, v);
  if (!isObject(at)) return;
  if (typeof at.$ref === 'string' && !resolveRef(root, at.$ref)) {
    delete at.$ref;
    at.description ??= '';
  }
  for (const [key, v] of Object.entries(at)) if (!['default', 'enum', 'const', 'examples'].includes(key)) dropDanglingRefs(root, v);
}
