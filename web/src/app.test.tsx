import { renderToStaticMarkup } from 'react-dom/server';
import { beforeAll, expect, it, vi } from 'vitest';

// The page's parts as a screen reader meets them, whatever the style sheet hides.
beforeAll(() => {
  vi.stubGlobal('matchMedia', () => ({ matches: false, addEventListener() {}, removeEventListener() {} }));
  vi.stubGlobal('navigator', { platform: '' });
  vi.stubGlobal('window', { addEventListener() {}, removeEventListener() {} });
});

vi.mock('./theme', () => ({ useTheme: () => 'light', setTheme: () => {} }));

it('names every link and button of the navigation', async () => {
  const { Nav } = await import('./app');
  const status = { version: '1', servers: [{ name: 'a', status: 'disconnected' }] } as unknown as NonNullable<Parameters<typeof Nav>[0]['status']>;
  const html = renderToStaticMarkup(<Nav current="chat" online status={status} />);
  for (const tag of html.match(/<(a|button) [^>]*>/g)!) expect(tag).toContain('aria-label="');
  expect(html).toContain('aria-label="Servers, 1 not connected"');
});

it('announces a reply when it is finished', async () => {
  const { Scroll } = await import('./chat/view');
  const log = (busy: boolean) => renderToStaticMarkup(<Scroll busy={busy} loading={false} count={1} tail={null} hold={false}>x</Scroll>);
  expect(log(true)).toMatch(/role="log" aria-live="polite" aria-busy="true"/);
  expect(log(false)).toMatch(/role="log" aria-live="polite" aria-busy="false"/);
});
