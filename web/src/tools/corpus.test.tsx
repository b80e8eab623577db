// Renders a form for every schema in the test data, of real servers and of unusual ones.
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, it } from 'vitest';
import { SchemaForm } from './form';
import { prepare } from './prepare';
import { isTooComplex } from './schema';
import { validate } from './validator';
import { initialValue } from './values';

type Tool = { server?: string; name?: string; tool?: string; inputSchema?: Record<string, unknown> };

const odd = import.meta.glob<Tool>('../../../internal/provider/testdata/corpus/*.json', { eager: true, import: 'default' });
const real = import.meta.glob<Tool[] | { tools: Tool[] }>('../../../internal/provider/testdata/servers/*.json', { eager: true, import: 'default' });
// Tools of public servers, if they are available beside the repository.
const lists = import.meta.glob<string>('../../../../shared/search-eval/dev/tools.jsonl', { eager: true, query: '?raw', import: 'default' });

/** published returns a sample of the public tools, with more of those with a property of an unspecific type. */
function published(): Tool[] {
  const all = Object.values(lists).flatMap((text) => text.trim().split('\n').map((l) => JSON.parse(l) as Tool));
  const vague = (t: Tool) => Object.values((t.inputSchema?.properties ?? {}) as object).some((p) => typeof p?.type !== 'string' || p.type === 'object');
  return all.filter((t, i) => i % 40 === 0 || (i % 8 === 0 && vague(t)));
}

const html = (schema: Record<string, unknown>) => renderToStaticMarkup(<SchemaForm formId="f" schema={schema} value={undefined} onChange={() => {}} onSubmit={() => {}} />);

const originalWarn = console.warn;

it.each([
  ['odd schemas', () => Object.values(odd)],
  ['real servers', () => Object.values(real).flatMap((list) => (Array.isArray(list) ? list : list.tools))],
  ['public servers', published],
])('a form of each tool: %s', (_, tools) => {
  console.warn = () => {};
  try {
    const problems: string[] = [];
    for (const t of tools()) {
      const schema = t.inputSchema ?? {};
      const name = `${t.server}:${t.name ?? t.tool}`;
      // Arguments are an object: no value is valid for a root of another type, and an enum of objects is not a form.
      if (isTooComplex(schema) || schema.enum || ![undefined, 'object'].includes([schema.type].flat()[0] as undefined)) continue;
      try {
        if (/unsupported/i.test(html(schema))) problems.push(`${name}: a field is unsupported`);
      } catch (e) {
        problems.push(`${name}: ${String(e)}`);
      }
      for (const e of validate(schema, initialValue(prepare(schema)))) if (e.name !== 'required') problems.push(`${name}: ${e.stack} (${e.name})`);
    }
    expect(problems).toEqual([]);
  } finally {
    console.warn = originalWarn;
  }
}, 120_000);
