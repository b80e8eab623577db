// The settings of the configuration's schema, as the form shows them.

type Node = Record<string, unknown>;

export type Kind = 'boolean' | 'number' | 'text' | 'choice' | 'texts' | 'objects' | 'json';

export interface Spec {
  /** The key from the group on: cache.enabled. */
  key: string;
  kind: Kind;
  description: string;
  /** A change takes effect with the next start only. */
  restart: boolean;
  secret?: boolean;
  choices?: string[];
  default?: unknown;
  /** Of each object in a list. */
  fields?: Spec[];
}

export interface Group {
  key: string;
  description: string;
  specs: Spec[];
}

const applyKey = 'x-apply';
const isNode = (v: unknown): v is Node => v !== null && typeof v === 'object' && !Array.isArray(v);

/** groupsOf returns the settings of the schema, without servers and other names of settings. */
export function groupsOf(schema: Node): Group[] {
  const plain: Group = { key: '', description: 'The gateway itself.', specs: [] };
  const groups: Group[] = [];
  for (const [key, raw] of Object.entries(isNode(schema.properties) ? schema.properties : {})) {
    if (!isNode(raw) || raw[applyKey] === undefined || key === 'mcpServers') continue;
    const s = preferred(raw);
    const restart = raw[applyKey] === 'restart';
    const description = String(raw.description ?? s.description ?? '');
    if (isNode(s.properties)) groups.push({ key, description, specs: specsOf(s.properties, '', restart) });
    else if (s.type === 'array') groups.push({ key, description, specs: [specOf('', { ...s, description }, restart)] });
    else plain.specs.push(specOf(key, raw, restart));
  }
  return [plain, ...groups];
}

/** preferred returns the fullest of the forms that a setting may have: a list of objects, an object, a list, a choice. */
function preferred(s: Node): Node {
  const of = Array.isArray(s.anyOf) ? s.anyOf.filter(isNode) : [];
  if (of.length === 0) return s;
  const best =
    of.find((v) => v.type === 'array' && isNode(v.items) && isNode(v.items.properties)) ?? of.find((v) => isNode(v.properties)) ?? of.find((v) => v.type === 'array') ?? of.find((v) => Array.isArray(v.enum)) ?? of[0]!;
  const { anyOf: _, ...rest } = s;
  return { ...best, ...rest, ...(best.type !== undefined && { type: best.type }) };
}

function specsOf(properties: Node, prefix: string, restart: boolean): Spec[] {
  const out: Spec[] = [];
  for (const [name, raw] of Object.entries(properties)) {
    if (!isNode(raw) || raw.deprecated || raw.$ref) continue;
    const s = preferred(raw);
    const later = raw[applyKey] === undefined ? restart : raw[applyKey] === 'restart';
    const key = prefix ? `${prefix}.${name}` : name;
    if (isNode(s.properties)) out.push(...specsOf(s.properties, key, later));
    else out.push(specOf(key, raw, later));
  }
  return out;
}

function specOf(key: string, raw: Node, restart: boolean): Spec {
  const s = preferred(raw);
  const types = Array.isArray(s.type) ? s.type : [s.type];
  const spec: Spec = { key, kind: 'json', description: String(raw.description ?? ''), restart, default: s.default };
  if (Array.isArray(s.enum)) return { ...spec, kind: 'choice', choices: s.enum.map(String) };
  if (types.includes('boolean')) return { ...spec, kind: 'boolean' };
  if (types.includes('integer') || types.includes('number')) return { ...spec, kind: 'number' };
  if (s.type === 'array') {
    const items = isNode(s.items) ? s.items : {};
    if (isNode(items.properties)) return { ...spec, kind: 'objects', fields: specsOf(items.properties, '', restart) };
    return { ...spec, kind: 'texts' };
  }
  if (types.includes('string')) return { ...spec, kind: 'text', secret: s.writeOnly === true };
  return spec;
}

/** at returns what is under a key with dots. */
export function at(value: unknown, key: string): unknown {
  for (const part of key ? key.split('.') : []) {
    if (!isNode(value)) return undefined;
    value = value[part];
  }
  return value;
}

/** put returns value with v under a key with dots; undefined removes it, and the objects that are empty then. */
export function put(value: unknown, key: string, v: unknown): Node | undefined {
  const [head = '', ...rest] = key.split('.');
  const base: Node = isNode(value) ? { ...value } : {};
  const next = rest.length > 0 ? put(base[head], rest.join('.'), v) : v;
  if (next === undefined) delete base[head];
  else base[head] = next;
  return Object.keys(base).length > 0 || key === '' ? base : undefined;
}

/** written reads what a person typed into the field of a number: a variable stays text. */
export function written(text: string): unknown {
  const t = text.trim();
  if (t === '') return undefined;
  return /^-?\d+(\.\d+)?$/.test(t) ? Number(t) : t;
}
