import { renderToStaticMarkup } from 'react-dom/server';
import { beforeAll, expect, it, vi } from 'vitest';

// Tests of the page's structure for screen readers, which does not depend on the style sheet.
beforeAll(() => {
  vi.stubGlobal('matchMedia', () => ({ matches: false, addEventListener() {}, removeEventListener() {} }));
  vi.stubGlobal('navigator', { platform: '' });
  vi.stubGlobal('window', { addEventListener() {}, removeEventListener() {} });
});

vi.mock('./theme', () => ({ useTheme: () => 'light', setTheme: () => {} }));

it('has a label in every link and button of the navigation, which no width takes away', async () => {
  const { Nav } = await import('./app');
  const { default: css } = await import('./styles/views.css?raw');
  const html = renderToStaticMarkup(<Nav current="chat" online />);
  for (const label of ['Chat', 'Tools', 'Code', 'Servers', 'Activity', 'Settings', 'Find']) expect(html).toContain(`<span>${label}</span>`);
  const hidden = css.match(/[^{}]+\{[^{}]*display: none[^{}]*\}/g)!.filter((rule) => /\.nav (li )?a\b|\.nav-find (span|\{)/.test(rule));
  expect(hidden).toEqual([]);
});

it('announces a reply when it is finished', async () => {
  const { MessageLog } = await import('./chat/view');
  const log = (busy: boolean) => renderToStaticMarkup(<MessageLog busy={busy} loading={false} turnCount={1} lastBlock={null} holdScroll={false}>x</MessageLog>);
  expect(log(true)).toMatch(/role="log" aria-live="polite" aria-busy="true"/);
  expect(log(false)).toMatch(/role="log" aria-live="polite" aria-busy="false"/);
});
