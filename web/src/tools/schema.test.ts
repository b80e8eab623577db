import { describe, expect, it } from 'vitest';
import { prepare } from './prepare';
import { isTooComplex } from './schema';
import { initialValue } from './values';

describe('a schema prepared for a form', () => {
  it('takes titles of choices from enumNames', () => {
    const s = prepare({ properties: { pet: { type: 'string', enum: ['a', 'b'], enumNames: ['Ape', 'Bee'] } } });
    expect(s.properties!.pet).toEqual({ type: 'string', oneOf: [{ const: 'a', title: 'Ape' }, { const: 'b', title: 'Bee' }] });
  });
  it('shows checkboxes for a list of few choices', () => {
    const s = prepare({ properties: { fish: { type: 'array', items: { anyOf: [{ const: 'x', title: 'X' }] } }, any: { type: 'array', items: { type: 'string' } } } });
    expect(s.properties!.fish).toMatchObject({ uniqueItems: true });
    expect(s.properties!.any).not.toHaveProperty('uniqueItems');
  });
  it('treats an unchecked required box as false', () => {
    const s = prepare({ properties: { ok: { type: 'boolean' }, maybe: { type: 'boolean' } }, required: ['ok'] });
    expect(initialValue(s)).toEqual({ ok: false });
  });
  it('tolerates invalid schemas', () => {
    for (const odd of [{}, { properties: null }, { properties: { a: true, b: null, c: 7 } }, { required: 'x', properties: { a: {} } }]) expect(() => prepare(odd as Record<string, unknown>)).not.toThrow();
  });
});

describe('the cost of a schema', () => {
  it('is too high for thirty levels of two references', () => {
    for (const keyword of ['anyOf', 'allOf']) {
      const $defs: Record<string, unknown> = { l30: { type: 'string' } };
      for (let i = 0; i < 30; i++) $defs[`l${i}`] = { [keyword]: [{ $ref: `#/$defs/l${i + 1}` }, { $ref: `#/$defs/l${i + 1}` }] };
      expect(isTooComplex({ type: 'object', properties: { a: { $ref: '#/$defs/l0' } }, $defs })).toBe(true);
    }
  });
  it('is low for recursive schemas and external references', () => {
    const tree = { $ref: '#/$defs/node', $defs: { node: { type: 'object', properties: { left: { $ref: '#/$defs/node' }, right: { $ref: '#/$defs/node' } } } } };
    expect(isTooComplex(tree)).toBe(false);
    expect(isTooComplex({ properties: { a: { $ref: 'https://x.example/s.json' }, b: { $ref: '#/nowhere' } } })).toBe(false);
  });
});
