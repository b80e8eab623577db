import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import { parsePart, uncut } from './cut';
import { ResultView } from './result';

const result = { content: [{ type: 'text', text: 'line "one"\nzwei ä\u0007 \\ end' }, { type: 'text', text: 'more' }], structuredContent: { rows: [{ id: 1, ok: true, n: null }, { id: -2.5e3 }], s: '' }, isError: false };

describe('a result that the log kept in part', () => {
  it('is read wherever it was cut', () => {
    const text = JSON.stringify(result);
    for (let i = 1; i < text.length; i++) expect(parsePart(text.slice(0, i)), text.slice(0, i)).toBeTypeOf('object');
    expect(parsePart(text)).toEqual(result);
  });
  it('is told from an ordinary text', () => {
    expect(uncut('{"a":1')).toBeUndefined();
    expect(uncut('plain… (70000 bytes in all)')).toBeUndefined();
    expect(uncut('{"content":[{"type":"text","text":"ab… (70000 bytes in all)')).toEqual({ value: { content: [{ type: 'text', text: 'ab…' }] }, bytes: 70000 });
  });
  it('is shown as JSON, and says that it is a part', () => {
    const page = renderToStaticMarkup(<ResultView result={JSON.stringify(result).slice(0, 200) + '… (70000 bytes in all)'} />);
    expect(page).toContain('zwei');
    expect(page).not.toContain('\\&quot;');
    expect(page).toMatch(/first 2\d\d B of 68 KB/);
  });
});
