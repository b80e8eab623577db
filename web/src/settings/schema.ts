// Converts the JSON schema of the configuration to the settings of the form.

type SchemaNode = Record<string, unknown>;

export type ControlKind = 'boolean' | 'number' | 'text' | 'choice' | 'texts' | 'objects' | 'json';

export interface SettingSpec {
  /** The key within the group, such as cache.enabled. */
  key: string;
  kind: ControlKind;
  description: string;
  /** A change takes effect only after a restart. */
  restart: boolean;
  secret?: boolean;
  choices?: string[];
  default?: unknown;
  /** The fields of each object in a list. */
  fields?: SettingSpec[];
}

export interface SettingGroup {
  key: string;
  description: string;
  specs: SettingSpec[];
}

const applyKey = 'x-apply';
const isNode = (v: unknown): v is SchemaNode => v !== null && typeof v === 'object' && !Array.isArray(v);

/** settingGroups returns the settings of the schema, without servers and aliases of settings. */
export function settingGroups(schema: SchemaNode): SettingGroup[] {
  const topLevel: SettingGroup = { key: '', description: 'The gateway itself.', specs: [] };
  const groups: SettingGroup[] = [];
  for (const [key, raw] of Object.entries(isNode(schema.properties) ? schema.properties : {})) {
    if (!isNode(raw) || raw[applyKey] === undefined || key === 'mcpServers') continue;
    const s = preferredVariant(raw);
    const restart = raw[applyKey] === 'restart';
    const description = String(raw.description ?? s.description ?? '');
    if (isNode(s.properties)) groups.push({ key, description, specs: specsOf(s.properties, '', restart) });
    else if (s.type === 'array') groups.push({ key, description, specs: [specOf('', { ...s, description }, restart)] });
    else topLevel.specs.push(specOf(key, raw, restart));
  }
  return [topLevel, ...groups];
}

/** preferredVariant returns the most expressive anyOf variant of a setting: a list of objects, an object, a list, or a choice. */
function preferredVariant(s: SchemaNode): SchemaNode {
  const variants = Array.isArray(s.anyOf) ? s.anyOf.filter(isNode) : [];
  if (variants.length === 0) return s;
  const best =
    variants.find((v) => v.type === 'array' && isNode(v.items) && isNode(v.items.properties)) ?? variants.find((v) => isNode(v.properties)) ?? variants.find((v) => v.type === 'array') ?? variants.find((v) => Array.isArray(v.enum)) ?? variants[0]!;
  const { anyOf: _, ...rest } = s;
  return { ...best, ...rest, ...(best.type !== undefined && { type: best.type }) };
}

function specsOf(properties: SchemaNode, prefix: string, restart: boolean): SettingSpec[] {
  const out: SettingSpec[] = [];
  for (const [name, raw] of Object.entries(properties)) {
    if (!isNode(raw) || raw.deprecated || raw.$ref) continue;
    const s = preferredVariant(raw);
    const needsRestart = raw[applyKey] === undefined ? restart : raw[applyKey] === 'restart';
    const key = prefix ? `${prefix}.${name}` : name;
    if (isNode(s.properties)) out.push(...specsOf(s.properties, key, needsRestart));
    else out.push(specOf(key, raw, needsRestart));
  }
  return out;
}

function specOf(key: string, raw: SchemaNode, restart: boolean): SettingSpec {
  const s = preferredVariant(raw);
  const types = Array.isArray(s.type) ? s.type : [s.type];
  const spec: SettingSpec = { key, kind: 'json', description: String(raw.description ?? ''), restart, default: s.default };
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

/** getPath returns the value at a dotted key. */
export function getPath(value: unknown, key: string): unknown {
  for (const part of key ? key.split('.') : []) {
    if (!isNode(value)) return undefined;
    value = value[part];
  }
  return value;
}

/** setPath returns value with v at a dotted key; undefined removes it, and objects that become empty. */
export function setPath(value: unknown, key: string, v: unknown): SchemaNode | undefined {
  const [head = '', ...rest] = key.split('.');
  const base: SchemaNode = isNode(value) ? { ...value } : {};
  const next = rest.length > 0 ? setPath(base[head], rest.join('.'), v) : v;
  if (next === undefined) delete base[head];
  else base[head] = next;
  return Object.keys(base).length > 0 || key === '' ? base : undefined;
}

/** parseNumberOrText parses the text of a number field; a variable such as ${PORT} stays text. */
export function parseNumberOrText(text: string): unknown {
  const t = text.trim();
  if (t === '') return undefined;
  return /^-?\d+(\.\d+)?$/.test(t) ? Number(t) : t;
}
