import { expect, test } from 'vitest';
import schema from '../../../docs/junctor.schema.json';
import { getPath, parseNumberOrText, setPath, settingGroups } from './schema';


test('every setting of the configuration has a control and a description', () => {
  const groups = settingGroups(schema);
  const keys = groups.flatMap((g) => g.specs.map((s) => [g.key, s.key].filter(Boolean).join('.')));
  for (const want of ['listen', 'debugPort', 'log.level', 'cors.origins', 'limits.maxBodyBytes', 'toolRules', 'llm', 'auth.keys', 'store.url']) expect(keys).toContain(want);
  for (const other of ['mcpServers', 'servers', 'logLevel', 'OPENAI_API_KEY', 'discovery.toolRules']) expect(keys).not.toContain(other);
  for (const s of groups.flatMap((g) => g.specs)) expect(s.description, s.key).not.toBe('');
  const spec = (group: string, key: string) => groups.find((g) => g.key === group)!.specs.find((s) => s.key === key)!;
  expect(spec('log', 'level').kind).toBe('choice');
  expect(spec('log', 'level').restart).toBe(false);
  expect(spec('log', 'format').restart).toBe(true);
  expect(spec('', 'listen').restart).toBe(true);
  expect(spec('store', 'url').secret).toBe(true);
  expect(spec('cors', 'origins').kind).toBe('texts');
  expect(spec('llm', '').fields!.find((f) => f.key === 'apiKey')!.secret).toBe(true);
  expect(spec('llm', '').fields!.find((f) => f.key === 'provider')!.choices).toContain('openai');
});

test('values by key', () => {
  expect(getPath({ a: { b: 1 } }, 'a.b')).toBe(1);
  expect(getPath({ a: [1] }, 'a.b')).toBeUndefined();
  expect(setPath({ a: { b: 1 } }, 'a.b', undefined)).toBeUndefined();
  expect(setPath({ a: { b: 1 }, c: 2 }, 'a.b', undefined)).toEqual({ c: 2 });
  expect(setPath({}, 'a.b', 3)).toEqual({ a: { b: 3 } });
  expect(parseNumberOrText(' 12 ')).toBe(12);
  expect(parseNumberOrText('${N}')).toBe('${N}');
  expect(parseNumberOrText('')).toBeUndefined();
});
