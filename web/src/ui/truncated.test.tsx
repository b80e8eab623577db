import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import { parseJsonPrefix, parseTruncated } from './truncated';
import { ResultView } from './result';

const result = { content: [{ type: 'text', text: 'line "one"\nzwei ä\u0007 \\ end' }, { type: 'text', text: 'more' }], structuredContent: { rows: [{ id: 1, ok: true, n: null }, { id: -2.5e3 }], s: '' }, isError: false };

describe('a result that the call log truncated', () => {
  it('is parsed wherever it was truncated', () => {
    const text = JSON.stringify(result);
    for (let i = 1; i < text.length; i++) expect(parseJsonPrefix(text.slice(0, i)), text.slice(0, i)).toBeTypeOf('object');
    expect(parseJsonPrefix(text)).toEqual(result);
  });
  it('is distinguished from other text', () => {
    expect(parseTruncated('{"a":1')).toBeUndefined();
    expect(parseTruncated('plain… (70000 bytes in all)')).toBeUndefined();
    expect(parseTruncated('{"content":[{"type":"text","text":"ab… (70000 bytes in all)')).toEqual({ value: { content: [{ type: 'text', text: 'ab…' }] }, bytes: 70000 });
  });
  it('is shown as JSON, with a note that it is truncated', () => {
    const page = renderToStaticMarkup(<ResultView result={JSON.stringify(result).slice(0, 200) + '… (70000 bytes in all)'} />);
    expect(page).toContain('zwei');
    expect(page).not.toContain('\\&quot;');
    expect(page).toMatch(/first 2\d\d B of 68 KB/);
  });
});
