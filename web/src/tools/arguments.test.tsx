import { renderToStaticMarkup } from 'react-dom/server';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { parseRoute } from '../lib/use';
import { memoryStorage } from '../lib/storage.test-helper';
import { argumentsFromQuery, parseArguments, toolHref } from './arguments';
import { firstProblemControl, formProblems } from './form';
import { ProblemList } from './run';
import { validate } from './validator';

describe('arguments in a link to a form', () => {
  beforeEach(() => vi.stubGlobal('sessionStorage', memoryStorage()));
  const restored = (args: unknown) => argumentsFromQuery(parseRoute(toolHref('s', 't', args)).query);
  it('are restored completely, whatever their length', () => {
    for (const args of [{ a: 1 }, { text: 'x"ä'.repeat(700) }, { text: 'y'.repeat(1_000_000) }]) expect(restored(args)).toEqual(args);
    expect(toolHref('s', 't', { text: 'y'.repeat(1_000_000) }).length).toBeLessThan(100);
  });
  it('are stored in a bounded number', () => {
    const first = toolHref('s', 't', { text: 'a'.repeat(3000) });
    for (let i = 0; i < 60; i++) expect(restored({ i, text: 'a'.repeat(3000) })).toEqual({ i, text: 'a'.repeat(3000) });
    expect(Object.keys(sessionStorage).length).toBeLessThanOrEqual(20);
    expect(argumentsFromQuery(parseRoute(first).query)).toBeUndefined();
  });
  it('are parsed from JSON, or return an error', () => {
    expect(parseArguments(' ')).toEqual({ value: {} });
    expect(parseArguments('[1]').error).toMatch(/object/);
    expect(parseArguments('{"a":').error).toBeTruthy();
    expect(argumentsFromQuery(new URLSearchParams())).toBeUndefined();
  });
});

describe('the problems of a form', () => {
  const schema = { type: 'object', properties: { name: { type: 'string' }, list: { type: 'array', items: { type: 'object', properties: { n: { type: 'integer' } } } } }, required: ['name'] };
  const problems = formProblems(validate(schema, { list: [{ n: 'x' }] }));
  it('are listed by field', () => {
    expect(problems.map((p) => p.id).sort()).toEqual(['root_list_0_n', 'root_name']);
    const list = renderToStaticMarkup(<ProblemList problems={problems} />);
    expect(list).toMatch(/role="alert".*2 problems.*name: is required/);
  });
  it('focus the first field on the page', () => {
    const controls = ['root_other', 'root_list_0_n', 'root_name'].map((id) => ({ id }));
    expect(firstProblemControl(controls, problems)).toEqual({ id: 'root_list_0_n' });
    expect(firstProblemControl([{ id: 'root_shape__oneof_select' }, { id: 'root_z' }], [{ id: 'root_shape', text: '' }])).toEqual({ id: 'root_shape__oneof_select' });
  });
});
