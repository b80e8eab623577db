import { describe, expect, it } from 'vitest';
import { prepare } from './schema';

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
