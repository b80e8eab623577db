import { describe, expect, it } from 'vitest';
import { stableEnd } from '../chat/markdown';
import { stripJsonComments } from '../servers/add';
import { entryFromForm, splitArgs } from '../servers/entry';
import { python, quote, snippets } from '../tools/snippets';
import validator from '../tools/validator';
import { readLines } from './api';
import { formatDuration, formatSize, oneLine, timeAgo } from './format';
import { href, parseRoute } from './use';

describe('routes', () => {
  it('round-trip any name', () => {
    for (const name of ['a', 'a/b', 'a b', 'ä?#&=%', '<img>']) {
      const r = parseRoute(href(['tools', 's', name], { q: name, empty: '' }));
      expect(r.parts).toEqual(['tools', 's', name]);
      expect(r.query.get('q')).toBe(name);
      expect(r.query.has('empty')).toBe(false);
    }
    expect(parseRoute('#/%E0%A4%A').parts).toHaveLength(1); // not a valid escape
  });
});

describe('lines', () => {
  it('are complete, however the bytes are split', async () => {
    const bytes = new TextEncoder().encode('ä€😀\nsecond\n\nlast');
    for (const step of [1, 2, 3, 7, 100]) {
      const body = new ReadableStream<Uint8Array>({
        start(c) {
          for (let i = 0; i < bytes.length; i += step) c.enqueue(bytes.slice(i, i + step));
          c.close();
        },
      });
      const got: string[] = [];
      for await (const l of readLines(body)) got.push(l);
      expect(got).toEqual(['ä€😀', 'second', '', 'last']);
    }
  });
});

describe('snippets', () => {
  const call = { origin: 'http://h', server: 's', tool: "t'x", args: { a: "it's", n: null, l: [true], o: {} } };
  it('quote arguments for a shell', () => {
    expect(quote("it's")).toBe(`'it'\\''s'`);
    for (const s of snippets) expect(s.make(call)).toContain('t');
    expect(snippets[0]!.make(call)).toContain(`it'\\''s`);
  });
  it('write Python literals', () => {
    expect(python(call.args)).toBe('{\n    "a": "it\'s",\n    "n": None,\n    "l": [\n        True,\n    ],\n    "o": {},\n}');
  });
});

describe('the server form', () => {
  it('splits arguments as a shell does', () => {
    expect(splitArgs(`-y "a b" 'c d' e\\ f "" "x\\"y"`)).toEqual(['-y', 'a b', 'c d', 'e f', '', 'x"y']);
    expect(splitArgs('  ')).toEqual([]);
  });
  it('creates an mcpServers entry', () => {
    const f = { name: 'n', kind: 'program' as const, command: ' npx ', args: '-y x', env: 'A=1\n\nB=x=y', url: '', headers: '', openapi: '', baseUrl: '' };
    expect(entryFromForm(f)).toEqual({ command: 'npx', args: ['-y', 'x'], env: { A: '1', B: 'x=y' } });
    expect(entryFromForm({ ...f, kind: 'url', url: 'http://x', headers: 'Authorization: Bearer a:b' })).toEqual({ url: 'http://x', headers: { Authorization: 'Bearer a:b' } });
    expect(() => entryFromForm({ ...f, env: 'nonsense' })).toThrow('nonsense');
  });
  it('reads JSON with comments and trailing commas', () => {
    expect(JSON.parse(stripJsonComments('{ // c\n "a": "http://x//y", /* b */ "l": [1,2,], }'))).toEqual({ a: 'http://x//y', l: [1, 2] });
  });
});

describe('streamed Markdown', () => {
  it('is split where the part before can no longer change', () => {
    expect(stableEnd('one\n\ntwo')).toBe(5);
    expect(stableEnd('one\n\n```\na\n\nb')).toBe(0);
    expect(stableEnd('one\n\n- a\n\n- b')).toBe(0);
    expect(stableEnd('```\na\n\nb\n```\n\nnext')).toBe('```\na\n\nb\n```\n\n'.length);
  });
});

describe('the forms’ validator', () => {
  const schema = { type: 'object' as const, required: ['a'], properties: { a: { type: 'integer' as const, minimum: 2 }, b: { type: 'object' as const, properties: { c: { type: 'string' as const } } } } };
  it('reports missing and invalid values', () => {
    const errors = (data: unknown) => validator.validateFormData(data, schema).errors.map((e) => e.property);
    expect(errors({ a: 3 })).toEqual([]);
    expect(errors({})).toEqual(['.a']);
    expect(errors({ a: 1, b: { c: 5 } }).sort()).toEqual(['.a', '.b.c']);
  });
  it('resolves references to the root schema', () => {
    const root = { $defs: { x: { type: 'string' as const } } };
    expect(validator.isValid({ $ref: '#/$defs/x' }, 'a', root)).toBe(true);
    expect(validator.isValid({ properties: { p: { $ref: '#/$defs/x' } } }, { p: 1 }, root)).toBe(false);
  });
  it('does not generate code', () => {
    // The page's Content-Security-Policy forbids creating code; the test environment does not.
    const real = globalThis.Function;
    globalThis.Function = (() => {
      throw new Error('code was made');
    }) as unknown as FunctionConstructor;
    try {
      expect(validator.isValid(schema, { a: 5 }, schema)).toBe(true);
    } finally {
      globalThis.Function = real;
    }
  });
});

describe('formats', () => {
  it('are readable', () => {
    expect([0, 0.4, 12, 1500, 65_000, 3_700_000, 90_000_000].map(formatDuration)).toEqual(['0 ms', '<1 ms', '12 ms', '1.5 s', '1 min 5 s', '1 h 1 min', '1 d 1 h']);
    expect([5, 2048, 5_000_000].map(formatSize)).toEqual(['5 B', '2.0 KB', '4.8 MB']);
    expect(timeAgo(new Date(1000).toISOString(), 62_000)).toBe('1 min ago');
    expect(timeAgo(undefined)).toBe('');
    expect(oneLine({ a: 'x'.repeat(300) }, 20)).toHaveLength(20);
  });
});
