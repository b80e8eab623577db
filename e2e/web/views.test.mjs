// Every view of the page, light and dark, at four widths, in a real browser.
// The markup is the same in both themes, so that in the dark one only the rules
// about colors are checked again.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shared } from './page.mjs';
import { colorRules, screenshot, violations, waitForNoOverflow } from './fixture.mjs';

const call = (g, server, tool, args, signal) =>
  fetch(`${g.url}/call_tool`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ server, tool, arguments: args }), signal });

const fixture = shared(async (g) => {
  // Calls, for the list of them.
  for (const [tool, args] of [['echo', { message: 'hello' }], ['get-sum', { a: 1, b: 2 }], ['get-sum', { a: 'one' }]])
    await call(g, 'everything', tool, args);
});
const { withPage } = fixture;

const views = [
  ['chat', '/#/chat', (p) => p.getByRole('heading', { name: 'What can I help with?' })],
  ['tools', '/#/tools', (p) => p.locator('.tool-row').first()],
  ['tool', `/#/tools/everything/get-sum?args=${encodeURIComponent('{"a":2,"b":3}')}`, (p) => p.getByRole('button', { name: 'Run', exact: true })],
  ['form', '/#/tools/memory/create_entities', (p) => p.getByRole('button', { name: 'Run', exact: true })],
  ['code', '/#/code', (p) => p.getByRole('button', { name: 'Run', exact: true })],
  ['resources', '/#/resources', (p) => p.locator('.offer-row').first()],
  ['servers', '/#/servers', (p) => p.locator('.server-row').first()],
  ['server', '/#/servers/everything', (p) => p.getByText('handshake')],
  ['add', '/#/servers?add=form', (p) => p.getByRole('dialog')],
  ['activity', '/#/activity', (p) => p.locator('.call-row').first()],
  ['approvals', '/#/approvals', (p) => p.getByRole('button', { name: 'Allow once' })],
  ['settings', '/#/settings', (p) => p.getByText('Connect an agent')],
  ['keys', '/#/settings/keys', (p) => p.getByRole('button', { name: 'New key' })],
  ['models', '/#/settings/models', (p) => p.getByRole('button', { name: 'Add model' })],
  ['audit', '/#/settings/audit', (p) => p.getByRole('cell').first()],
  ['config', '/#/settings/config', (p) => p.locator('.setting').first()],
];

for (const theme of ['light', 'dark']) {
  test(`every view, ${theme}, at 390, 768, 1,024 and 1,440 px: no accessibility violation, no overflow`, withPage('/', async (page) => {
    const waiting = new AbortController(); // a call that waits for approval, once the page has opened the inbox
    void (async () => {
      while (!waiting.signal.aborted) {
        await call(fixture.g, 'files', 'write_file', { path: fixture.note, content: 'hello' }, waiting.signal).catch(() => {});
        await new Promise((done) => setTimeout(done, 200));
      }
    })();
    try {
      await page.getByRole('link', { name: /^Approvals/ }).waitFor();
      for (const [name, path, ready] of views) {
        await page.goto(fixture.g.url + path);
        for (const width of [1440, 1024, 768, 390]) {
          await page.setViewportSize({ width, height: width < 500 ? 760 : 860 });
          await ready(page).waitFor();
          await screenshot(page, `${theme}-${width}-${name}`);
          assert.deepEqual(await violations(page, theme === 'dark' ? colorRules : undefined), [], `${name} at ${width} px`);
          await waitForNoOverflow(page, `${name} at ${width} px`);
        }
      }
    } finally {
      waiting.abort();
    }
  }, { colorScheme: theme }));
}
