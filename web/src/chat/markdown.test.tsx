import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import { definitions, StreamingMarkdown } from './markdown';

const html = (text: string, live = true) => renderToStaticMarkup(<StreamingMarkdown text={text} live={live} />);

describe('links and footnotes whose definition stands elsewhere', () => {
  const text = 'See [the guide][g] and a fact[^1].\n\nMore text.\n\n[g]: https://guide.example/x\n[^1]: Said so\n    twice.\n\nThe end, see [again][g].';
  it('survive while the text grows, and at its end', () => {
    for (const live of [true, false]) {
      const page = html(text, live);
      expect(page.match(/<a href="https:\/\/guide.example\/x"/g)).toHaveLength(2);
      expect(page).toContain('Said so');
      expect(page).not.toMatch(/\[g\]|\[\^1\]|↩/);
    }
  });
  it('are not looked for in code', () => {
    expect(definitions('```\n[a]: https://x.example\n```\n\n[b]: https://y.example')).toBe('[b]: https://y.example\n\n');
    expect(html('one [b]\n\n[b]: https://y.example\n\ntwo [b]\n```\nopen')).toMatch(/y\.example.*y\.example.*<pre[^>]*>(<code[^>]*>)?open/s);
  });
});
