import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import { jsonOrText, parseJsonOrText } from './fields';
import { SchemaForm } from './form';
import { prepare } from './prepare';
import { validate } from './validator';
import { initialValue, valueToSend, withNewItems } from './values';

type Schema = Record<string, unknown>;

/** html returns the first rendering of the form of a schema, optionally with a value. */
function html(schema: Schema, value?: unknown): string {
  return renderToStaticMarkup(<SchemaForm formId="f" schema={schema} value={value} onChange={() => {}} onSubmit={() => {}} />);
}

const untouched = (schema: Schema) => initialValue(prepare(schema));
const object = (properties: Schema, required: string[] = []): Schema => ({ type: 'object', properties, required });

describe('the defaults of a form', () => {
  const schema = object(
    {
      priority: { type: 'string', enum: ['low', 'normal', 'high'], default: 'normal' },
      notify: { type: 'boolean', default: true },
      limit: { type: 'integer', default: 10 },
      name: { type: 'string', default: 'x' },
      page: { type: 'object', properties: { size: { type: 'integer', default: 50 } } },
      filter: { type: 'object', properties: { field: { type: 'string' }, not: { type: 'boolean', default: true } }, required: ['field'] },
      sure: { type: 'boolean' },
    },
    ['sure'],
  );
  it('are sent, with those of objects that need no other values', () => {
    expect(untouched(schema)).toEqual({ priority: 'normal', notify: true, limit: 10, name: 'x', page: { size: 50 }, sure: false });
  });
  it('are shown, and marked', () => {
    const page = html(schema);
    expect(page).toMatch(/<option value="1" selected="">normal/);
    expect(page).toMatch(/<input type="checkbox" id="root_notify"[^>]*checked=""/);
    expect(page).toMatch(/id="root_limit"[^>]*value="10"/);
    expect(page).toMatch(/id="root_page_size"[^>]*value="50"/);
    expect(page.match(/This is the default\./g)).toHaveLength(5);
  });
  it('are not shown for arguments that leave them out', () => {
    const page = html(schema, { sure: true });
    expect(page).toMatch(/<option value="" selected="">Not set/);
    expect(page).not.toMatch(/<option value="\d" selected=""/);
    expect(page).not.toContain('This is the default.');
    expect(page).toContain('Default: normal');
  });
  it('are filled into items that are added to a list', () => {
    const s = prepare(object({ rows: { type: 'array', items: { type: 'object', properties: { n: { type: 'integer', default: 3 }, t: { type: 'string' } } } } }));
    expect(withNewItems(s, {}, { rows: [{}] })).toEqual({ rows: [{ n: 3 }] });
    expect(withNewItems(s, { rows: [{ t: 'a' }] }, { rows: [{ t: 'b' }, undefined] })).toEqual({ rows: [{ t: 'b' }, { n: 3 }] });
  });
  it('are ignored where they are not of the type or among the choices', () => {
    expect(untouched(object({ a: { type: 'boolean', default: 'yes' }, b: { type: 'string', enum: ['x'], default: 'y' }, c: { type: 'string', default: null }, d: { type: 'array', items: { type: 'string' }, default: [] } }))).toEqual({ d: [] });
  });
});

describe('the schemas of Python servers', () => {
  const optional = { anyOf: [{ type: 'string' }, { type: 'null' }], default: null, title: 'Name' };
  it('show an optional value as one field, which is omitted when empty', () => {
    const schema = object({ name: optional, age: { anyOf: [{ type: 'integer' }, { type: 'null' }] } });
    const page = html(schema);
    expect(page).toMatch(/<input id="root_name"[^>]*type="text"/);
    expect(page).toMatch(/<input id="root_age"[^>]*type="number"/);
    expect(page).not.toMatch(/<select|ption 1/);
    expect(untouched(schema)).toEqual({});
    expect(valueToSend(prepare(schema), { name: undefined, age: 3 })).toEqual({ age: 3 });
    expect(valueToSend(prepare(schema), { name: null })).toEqual({ name: null });
  });
  it('send null for an empty value that is required', () => {
    const schema = object({ name: optional, kind: { type: ['string', 'null'] } }, ['name', 'kind']);
    expect(untouched(schema)).toEqual({ name: null, kind: null });
    expect(valueToSend(prepare(schema), { kind: 'a' })).toEqual({ name: null, kind: 'a' });
    expect(validate(schema, untouched(schema))).toEqual([]);
  });
  it('have three states for an optional boolean', () => {
    const page = html(object({ on: { anyOf: [{ type: 'boolean' }, { type: 'null' }], default: null } }));
    expect(page).toMatch(/<select id="root_on"[\s\S]*Not set<\/option>[\s\S]*Yes<\/option>[\s\S]*No<\/option>/);
  });
  const $defs = {
    Circle: { type: 'object', title: 'Circle', properties: { kind: { const: 'circle', title: 'Kind', type: 'string' }, r: { type: 'number', default: 1 } }, required: ['kind'] },
    Square: { type: 'object', title: 'Square', properties: { kind: { const: 'square', type: 'string' }, side: { type: 'number' } }, required: ['kind', 'side'] },
  };
  const shape = { oneOf: [{ $ref: '#/$defs/Circle' }, { $ref: '#/$defs/Square' }], discriminator: { propertyName: 'kind', mapping: { circle: '#/$defs/Circle', square: '#/$defs/Square' } } };
  it('show a union as a select of named variants, with the constant filled in', () => {
    const schema = { ...object({ shape }, ['shape']), $defs };
    const page = html(schema);
    expect(page).toMatch(/<select id="root_shape__oneof_select"[^>]*aria-label="shape: kind"[\s\S]*>circle<\/option>[\s\S]*>square<\/option>/);
    expect(page).toMatch(/<code id="root_shape_kind">circle<\/code>/);
    expect(page).not.toMatch(/<input id="root_shape_kind"/);
    expect(untouched(schema)).toEqual({ shape: { kind: 'circle', r: 1 } });
    expect(html(schema, { shape: { kind: 'square', side: 2 } })).toMatch(/<code id="root_shape_kind">square<\/code>[\s\S]*id="root_shape_side"[^>]*value="2"/);
  });
  it('report only the errors of the chosen variant of a union', () => {
    const schema = { ...object({ shapes: { type: 'array', items: shape } }), $defs };
    expect(validate(schema, { shapes: [{ kind: 'circle', r: 'x' }, { kind: 'square' }] }).map((e) => e.stack)).toEqual(['shapes.0.r type "string" is invalid. Expected "number".', 'shapes.1.side is required']);
  });
  it('choose no variant in an optional union', () => {
    const schema = { ...object({ shape: { anyOf: [...shape.oneOf, { type: 'null' }], default: null }, other: shape }), $defs };
    const page = html(schema);
    expect(page).toMatch(/<option value="0" selected="">None<\/option>/);
    expect(page).toMatch(/<option value="0" selected="">Not set<\/option>/);
    expect(untouched(schema)).toEqual({});
  });
  it('name the choices of simple types', () => {
    const page = html(object({ id: { anyOf: [{ type: 'string' }, { type: 'integer' }, { type: 'array', items: { type: 'string' } }] } }, ['id']));
    for (const name of ['Text', 'Whole number', 'List: text']) expect(page).toContain(`>${name}</option>`);
  });
  it('accept JSON or text if the schema does not specify a type', () => {
    const schema = object({ a: {}, b: { description: 'Anything' }, c: true, d: { type: 'object' }, e: { type: 'array' }, f: { type: 'any' }, g: { type: 'dict' }, h: { type: 'str' } });
    const page = html(schema);
    for (const id of 'abcdefg') expect(page).toContain(`<textarea id="root_${id}"`);
    expect(page).toMatch(/<input id="root_h"/);
    expect(page).not.toContain('nsupported');
    expect([parseJsonOrText('{"a":1}'), parseJsonOrText('7'), parseJsonOrText('deadbeef'), parseJsonOrText(' ')]).toEqual([{ a: 1 }, 7, 'deadbeef', undefined]);
    for (const v of ['deadbeef', '7', 7, { a: [1] }, null, true]) expect(parseJsonOrText(jsonOrText(v))).toEqual(v);
  });
  it('keep the line breaks of descriptions', () => {
    expect(html(object({ a: { type: 'string', description: 'First.\n\nArgs:\n  x' } }))).toContain('class="hint field-description">First.\n\nArgs:\n  x</p>');
  });
});
