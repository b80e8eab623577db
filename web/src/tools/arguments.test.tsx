import { renderToStaticMarkup } from 'react-dom/server';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { parseRoute } from '../lib/use';
import { memoryStorage } from '../lib/storage.test-helper';
import { argumentsOf, openTool, parseArguments } from './arguments';
import { firstOf, problemsOf } from './form';
import { Problems } from './run';
import { check } from './validator';

describe('arguments on their way to a form', () => {
  beforeEach(() => vi.stubGlobal('sessionStorage', memoryStorage()));
  const sent = (args: unknown) => argumentsOf(parseRoute(openTool('s', 't', args)).query);
  it('arrive whole, however long', () => {
    for (const args of [{ a: 1 }, { text: 'x"ä'.repeat(700) }, { text: 'y'.repeat(1_000_000) }]) expect(sent(args)).toEqual(args);
    expect(openTool('s', 't', { text: 'y'.repeat(1_000_000) }).length).toBeLessThan(100);
  });
  it('are kept in a bounded number', () => {
    const first = openTool('s', 't', { text: 'a'.repeat(3000) });
    for (let i = 0; i < 60; i++) expect(sent({ i, text: 'a'.repeat(3000) })).toEqual({ i, text: 'a'.repeat(3000) });
    expect(Object.keys(sessionStorage).length).toBeLessThanOrEqual(20);
    expect(argumentsOf(parseRoute(first).query)).toBeUndefined();
  });
  it('are read from JSON, or say what is wrong', () => {
    expect(parseArguments(' ')).toEqual({ value: {} });
    expect(parseArguments('[1]').error).toMatch(/object/);
    expect(parseArguments('{"a":').error).toBeTruthy();
    expect(argumentsOf(new URLSearchParams())).toBeUndefined();
  });
});

describe('what is wrong in a form', () => {
  const schema = { type: 'object', properties: { name: { type: 'string' }, list: { type: 'array', items: { type: 'object', properties: { n: { type: 'integer' } } } } }, required: ['name'] };
  const problems = problemsOf(check(schema, { list: [{ n: 'x' }] }));
  it('is listed by field', () => {
    expect(problems.map((p) => p.id).sort()).toEqual(['root_list_0_n', 'root_name']);
    const list = renderToStaticMarkup(<Problems of={problems} />);
    expect(list).toMatch(/role="alert".*2 problems.*name: is required/);
  });
  it('gives the focus to the first field on the page', () => {
    const controls = ['root_other', 'root_list_0_n', 'root_name'].map((id) => ({ id }));
    expect(firstOf(controls, problems)).toEqual({ id: 'root_list_0_n' });
    expect(firstOf([{ id: 'root_shape__oneof_select' }, { id: 'root_z' }], [{ id: 'root_shape', text: '' }])).toEqual({ id: 'root_shape__oneof_select' });
  });
});
