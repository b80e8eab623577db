import { describe, expect, it } from 'vitest';
import { AppHost, appLimits, safeWebUrl, type HostCallbacks } from './host';
import { frameUrl, parseApp } from './resource';

function setUp(more: Partial<HostCallbacks> = {}) {
  const sent: any[] = [];
  const effects: string[] = [];
  let ms = 0;
  const host = new AppHost(
    {
      post: (m) => sent.push(m),
      callTool: async (name) => (effects.push(`call ${name}`), { content: [] }),
      readResource: async (uri) => (effects.push(`read ${uri}`), { contents: [] }),
      openLink: async (url) => (effects.push(`open ${url}`), false),
      resize: (height) => effects.push(`height ${height}`),
      stop: (reason) => effects.push(`stop ${reason}`),
      ...more,
    },
    { theme: 'light' },
    { serverTools: {} },
    () => ms,
  );
  const app = (m: object) => host.receive(JSON.stringify({ jsonrpc: '2.0', ...m }));
  const answer = async (id: unknown) => {
    for (let i = 0; i < 100 && !sent.some((m) => m.id === id); i++) await Promise.resolve();
    return sent.find((m) => m.id === id);
  };
  const start = async () => {
    app({ id: 'init', method: 'ui/initialize', params: { protocolVersion: '2026-01-26', appInfo: { name: 'a', version: '1' }, appCapabilities: {} } });
    await answer('init');
    app({ method: 'ui/notifications/initialized' });
  };
  return { host, sent, effects, app, answer, start, at: (t: number) => (ms = t) };
}

describe('the host of an app', () => {
  it('sends nothing before the app is initialized, then the arguments and the result once each', async () => {
    const { host, sent, start, answer } = setUp();
    host.setToolCall({ city: 'Rome' }, undefined);
    host.updateContext({ theme: 'dark' });
    expect(sent).toEqual([]);
    await start();
    expect((await answer('init')).result).toMatchObject({ protocolVersion: '2026-01-26', hostContext: { theme: 'dark' } });
    host.setToolCall({ city: 'Rome' }, { result: { content: [], structuredContent: { t: 1 } } });
    host.setToolCall({ city: 'Rome' }, undefined);
    expect(sent.slice(1).map((m) => [m.method, m.params])).toEqual([
      ['ui/notifications/tool-input', { arguments: { city: 'Rome' } }],
      ['ui/notifications/tool-result', { content: [], structuredContent: { t: 1 } }],
    ]);
  });

  it('notifies the app that the call was cancelled', async () => {
    const { host, sent, start } = setUp();
    await start();
    host.setToolCall({}, { cancelled: 'stopped' });
    expect(sent.at(-1)).toMatchObject({ method: 'ui/notifications/tool-cancelled', params: { reason: 'stopped' } });
  });

  it('refuses requests before ui/initialize, unknown ones and invalid ones', async () => {
    const { app, answer, effects, start } = setUp();
    app({ id: 1, method: 'tools/call', params: { name: 'x' } });
    expect((await answer(1)).error.code).toBe(-32600);
    await start();
    app({ id: 2, method: 'sampling/createMessage', params: {} });
    expect((await answer(2)).error.code).toBe(-32601);
    app({ id: 3, method: 'tools/call', params: { name: 7 } });
    expect((await answer(3)).error.code).toBe(-32602);
    app({ id: 4, method: 'ui/message', params: { role: 'user', content: { type: 'text', text: 'hi' } } });
    expect((await answer(4)).error.message).toContain('no chat');
    app({ id: 5, method: 'constructor', params: {} });
    expect((await answer(5)).error.code).toBe(-32601);
    expect(effects).toEqual([]);
  });

  it('opens only web URLs, and only with consent', async () => {
    const { app, answer, effects, start } = setUp();
    await start();
    for (const [i, url] of ['javascript:alert(1)', 'file:///etc/passwd', 'data:text/html,x', 'not an address', undefined].entries()) {
      app({ id: i, method: 'ui/open-link', params: { url } });
      expect((await answer(i)).error.code).toBe(-32602);
    }
    app({ id: 'ok', method: 'ui/open-link', params: { url: 'https://example.com/a' } });
    expect((await answer('ok')).result).toEqual({ isError: true });
    expect(effects).toEqual(['open https://example.com/a']);
    expect(safeWebUrl('https://example.com/' + 'a'.repeat(9000))).toBe('');
  });

  it('bounds the requests that are pending, and ends them on close', async () => {
    const signals: AbortSignal[] = [];
    const { host, app, answer, start, sent } = setUp({ callTool: (_, __, signal) => (signals.push(signal), new Promise(() => {})) });
    await start();
    for (let i = 0; i <= appLimits.pending; i++) app({ id: i, method: 'tools/call', params: { name: 'slow' } });
    expect((await answer(appLimits.pending)).error.message).toContain('pending');
    expect(signals).toHaveLength(appLimits.pending);
    app({ method: 'notifications/cancelled', params: { requestId: 0 } });
    expect(signals.map((s) => s.aborted)).toEqual([true, ...Array(appLimits.pending - 1).fill(false)]);
    host.close();
    expect(signals.every((s) => s.aborted)).toBe(true);
    const before = sent.length;
    app({ id: 'late', method: 'ping' });
    await Promise.resolve();
    expect(sent).toHaveLength(before);
  });

  it('stops an app that floods, and only such an app', () => {
    const { host, effects, at } = setUp();
    for (let s = 0; s < 5; s++) {
      at(s * 1000);
      for (let i = 0; i < appLimits.messagesPerSecond; i++) expect(host.countMessage()).toBe(true);
    }
    for (let i = 0; i < 1000; i++) expect(host.countMessage()).toBe(false);
    expect(effects).toEqual(['stop It sent too many messages.']);
  });

  it('bounds the height, and ignores invalid messages', async () => {
    const { host, app, effects, start } = setUp();
    await start();
    for (const height of [120.2, 1e9, -5, 'x', null]) app({ method: 'ui/notifications/size-changed', params: { height } });
    for (const text of ['', '{', '[]', '7', 'null', '{"id":{}}', '{"method":7}']) host.receive(text);
    expect(effects).toEqual(['height 121', `height ${appLimits.height}`, 'height 0']);
  });

  it('waits for the teardown response of the app, up to a timeout', async () => {
    const { host, app, sent, start } = setUp();
    await start();
    const done = host.tearDown('closed', 60_000);
    expect(sent.at(-1)).toMatchObject({ id: 'teardown', method: 'ui/resource-teardown' });
    app({ id: 'teardown', result: {} });
    await done;
    const silent = setUp();
    await silent.start();
    await silent.host.tearDown('closed', 1);
  });
});

describe('the resource of an app', () => {
  const mimeType = 'text/html;profile=mcp-app';
  it('is HTML of an app, as text or base64, with the origins that it declares', () => {
    const csp = { connectDomains: ['https://api.example.com', 7], resourceDomains: 'x' };
    expect(parseApp('ui://a', [{ uri: 'ui://a', mimeType, text: '<p>', _meta: { ui: { csp } } }])).toMatchObject({ html: '<p>', csp: { connectDomains: ['https://api.example.com'], resourceDomains: [] } });
    expect(parseApp('ui://a', [{ uri: 'ui://b', mimeType, blob: btoa('<b>') }]).html).toBe('<b>');
    for (const c of [{ mimeType: 'text/html', text: '' }, { mimeType: 'text/plain', text: '' }, { text: '' }]) expect(() => parseApp('ui://a', [c])).toThrow(/type/);
    expect(() => parseApp('ui://a', [])).toThrow(/no content/);
  });
  it('names the origins in the address of its frame', () => {
    expect(frameUrl({})).toBe('/app-frame');
    expect(frameUrl({ connectDomains: ['https://a', 'wss://b'], frameDomains: ['https://c'] })).toBe('/app-frame?connect=https%3A%2F%2Fa&connect=wss%3A%2F%2Fb&frame=https%3A%2F%2Fc');
  });
});
