import { describe, expect, it } from 'vitest';
import { prepare, tooCostly } from './schema';

describe('a schema as a form takes it', () => {
  it('has titles for choices that were named the old way', () => {
    const s = prepare({ properties: { pet: { type: 'string', enum: ['a', 'b'], enumNames: ['Ape', 'Bee'] } } });
    expect(s.properties!.pet).toEqual({ type: 'string', oneOf: [{ const: 'a', title: 'Ape' }, { const: 'b', title: 'Bee' }] });
  });
  it('offers boxes to tick for several of a few', () => {
    const s = prepare({ properties: { fish: { type: 'array', items: { anyOf: [{ const: 'x', title: 'X' }] } }, any: { type: 'array', items: { type: 'string' } } } });
    expect(s.properties!.fish).toMatchObject({ uniqueItems: true });
    expect(s.properties!.any).not.toHaveProperty('uniqueItems');
  });
  it('takes a box that must be there and is not ticked for a no', () => {
    const s = prepare({ properties: { ok: { type: 'boolean' }, maybe: { type: 'boolean' } }, required: ['ok'] });
    expect(s.properties).toEqual({ ok: { type: 'boolean', default: false }, maybe: { type: 'boolean' } });
  });
  it('survives what is no schema', () => {
    for (const odd of [{}, { properties: null }, { properties: { a: true, b: null, c: 7 } }, { required: 'x', properties: { a: {} } }]) expect(() => prepare(odd as Record<string, unknown>)).not.toThrow();
  });
});

describe('the cost of a schema', () => {
  it('is too much for thirty levels of two references, in either form', () => {
    for (const keyword of ['anyOf', 'allOf']) {
      const $defs: Record<string, unknown> = { l30: { type: 'string' } };
      for (let i = 0; i < 30; i++) $defs[`l${i}`] = { [keyword]: [{ $ref: `#/$defs/l${i + 1}` }, { $ref: `#/$defs/l${i + 1}` }] };
      expect(tooCostly({ type: 'object', properties: { a: { $ref: '#/$defs/l0' } }, $defs })).toBe(true);
    }
  });
  it('is small for trees that contain themselves and for references elsewhere', () => {
    const tree = { $ref: '#/$defs/node', $defs: { node: { type: 'object', properties: { left: { $ref: '#/$defs/node' }, right: { $ref: '#/$defs/node' } } } } };
    expect(tooCostly(tree)).toBe(false);
    expect(tooCostly({ properties: { a: { $ref: 'https://x.example/s.json' }, b: { $ref: '#/nowhere' } } })).toBe(false);
  });
});
