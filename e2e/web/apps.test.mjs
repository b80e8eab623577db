// MCP Apps on the page: the examples of the official SDK, and malicious apps.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { gateway, launchBrowser, pageTests, screenshot, sendMessage, servers, violations, waitForCount, waitForNoOverflow, waitUntil } from './fixture.mjs';

const fixture = {};
/** The requests to another host, which apps must not reach. */
const otherHostRequests = [];
const other = createServer((req, res) => {
  otherHostRequests.push(req.url);
  res.end('x');
});

before(async () => {
  await new Promise((done) => other.listen(0, '127.0.0.1', done));
  fixture.other = `http://127.0.0.1:${other.address().port}`;
  fixture.chrome = await launchBrowser({ isolated: true }); // an app in an endless loop must not block the page
  fixture.g = await gateway({
    script: {
      rules: [
        { when: { system: 'Write a title' }, reply: { error: { status: 400, message: 'no title' } } },
        { when: { user: 'debug', results: 0 }, reply: { calls: [{ tool: 'debug:debug-tool', args: { contentType: 'text', includeMeta: true } }] } },
        { when: { user: 'debug', results: 1 }, reply: { text: 'There it is.' } },
      ],
      default: { text: 'You said: {{user}}' },
    },
    config: { mcpServers: { clock: servers.clock, debug: servers.debug, badapps: servers.badapps }, toolRules: [{ pattern: 'badapps:guarded', approval: 'ask' }] },
    tools: ['clock:get-time', 'debug:debug-tool', 'badapps:escape'],
  });
});
after(async () => {
  await fixture.chrome?.close();
  await fixture.g?.stop();
  other.close();
});
const withPage = pageTests(() => fixture);

/**
 * typeInto fills a field of an app. The page returns the focus to a field of its own
 * that was in use within the last second.
 */
const typeInto = (page, field, text) => waitUntil(async () => {
  await page.waitForTimeout(1100);
  await field.click();
  await field.fill(text);
  return (await field.inputValue()) === text;
}, 'the field of the app cannot be filled');

/** appFrame returns the document of the app of a server. */
const appFrame = (page, server) => page.frameLocator(`iframe[title="App of ${server}"]`).frameLocator('iframe');
const run = (page) => page.getByRole('button', { name: 'Run', exact: true }).click();
const calls = (page, query) => page.evaluate((q) => fetch(`/api/calls?${q}`).then((r) => r.json()), query).then((r) => r.calls);

test('apps: an app of the official SDK shows a result, calls its server, follows the theme and asks before a link opens', withPage('/#/tools/clock/get-time', async (page, context) => {
  await run(page);
  const app = appFrame(page, 'clock');
  const time = app.locator('#server-time');
  await waitUntil(async () => /^\d{4}-/.test(await time.innerText()), 'the app does not show the result');
  const first = await time.innerText();
  await app.locator('#get-time-btn').click();
  await waitUntil(async () => (await time.innerText()) !== first, 'the app got no new time from its server');
  assert.equal((await calls(page, 'api=app&server=clock'))[0].tool, 'get-time');

  const height = async () => (await page.locator('.app iframe').boundingBox()).height;
  await waitUntil(async () => (await height()) > 200, 'the app did not get the height that it asked for');
  await app.locator('html[data-theme=light]').waitFor();
  await screenshot(page, 'app');
  await page.getByRole('button', { name: 'Switch to the dark theme' }).click();
  await app.locator('html[data-theme=dark]').waitFor();
  await screenshot(page, 'app-dark');
  assert.deepEqual(await violations(page), []);
  await page.setViewportSize({ width: 390, height: 760 });
  await waitForNoOverflow(page, 'a tool with an app');

  await typeInto(page, app.locator('#link-url'), `${fixture.g.url}/health`);
  await app.locator('#open-link-btn').click();
  const question = page.getByRole('dialog', { name: 'Open this link?' });
  await question.getByText(`${fixture.g.url}/health`).waitFor();
  await question.getByRole('button', { name: 'Refuse' }).click();
  assert.equal(context.pages().length, 1);
  await app.locator('#open-link-btn').click();
  const opened = context.waitForEvent('page');
  await question.getByRole('button', { name: 'Open link' }).click();
  await (await opened).waitForURL(/health/);

  await page.getByRole('button', { name: 'Close app' }).click();
  await page.getByRole('button', { name: 'Show app' }).click();
  await waitUntil(async () => /^\d{4}-/.test(await time.innerText()), 'the app does not show the result again');
}));

test('apps: in the chat, an app gets the call, uses tools that models do not see, and sends messages with consent', withPage('/#/chat', async (page) => {
  await sendMessage(page, 'debug please');
  await page.getByText('There it is.').waitFor();
  const app = appFrame(page, 'debug');
  const log = app.locator('#event-log');
  await log.getByText('ontoolresult').first().waitFor();
  assert.match(await log.innerText(), /"contentType":"text"/);
  assert.match(await app.locator('#host-context-info').innerText(), /Junctor/);
  await app.locator('#call-debug-refresh-btn').click();
  await log.getByText('server-tool-result').first().waitFor();
  assert.ok((await calls(page, 'api=app&server=debug&tool=debug-refresh')).length > 0);
  const shown = await page.evaluate(() => fetch('/tools/openai').then((r) => r.text()));
  assert.match(shown, /debug-tool/);
  assert.doesNotMatch(shown, /debug-refresh/);
  await typeInto(page, app.locator('#message-text'), 'from the app');
  await app.locator('#send-message-text-btn').click();
  const question = page.getByRole('dialog', { name: 'Send this message?' });
  await question.getByText('from the app').waitFor();
  await screenshot(page, 'app-asks');
  await question.getByRole('button', { name: 'Send', exact: true }).click();
  await page.getByText('You said: from the app').waitFor();
  await log.getByText('send-message-result').waitFor(); // the app kept running
  await page.reload();
  await waitForCount(page.locator('.app'), 0); // the app of an earlier turn is not opened
  await page.getByRole('button', { name: 'Show app' }).click();
  await log.getByText('ontoolresult').first().waitFor();
}));

const expectedErrors = /Content.Security.Policy|Refused to|sandbox|SecurityError|ERR_BLOCKED|^request: http:\/\/127\.0\.0\.1|violates|Unsafe attempt|Blocked|denied/i;
const badAppPath = (name, args = {}) => `/#/tools/badapps/${name}?args=${encodeURIComponent(JSON.stringify(args))}`;

test('apps: a hostile app reaches neither the page, nor the gateway, nor another host, nor the tools of others', withPage('/#/tools', async (page, context) => {
  const { g, other } = fixture;
  await page.goto(g.url + badAppPath('escape', { gateway: g.url, other }));
  await run(page);
  const report = appFrame(page, 'badapps').locator('#report');
  await waitUntil(async () => (await report.innerText()) !== 'trying', 'the app did not finish');
  assert.equal(await report.innerText(), 'nothing worked');
  await waitForCount(page.getByText('forged'), 0);
  assert.deepEqual(await calls(page, 'server=badapps&tool=touched'), []);
  await page.goto(g.url + badAppPath('leave', { other }));
  await run(page);
  await appFrame(page, 'badapps').getByText('leaving').waitFor({ state: 'detached' }); // the browser replaces it with an error page
  await page.getByRole('button', { name: 'Close app' }).click();
  assert.deepEqual(otherHostRequests, []);
  assert.equal(context.pages().length, 1);
}, { expected: expectedErrors }));

test('apps: an app that floods, sends too much, takes the focus or spins is stopped, and the page stays usable', withPage('/#/tools', async (page) => {
  const { g } = fixture;
  for (const [name, args, reason] of [['flood', {}, 'too many messages'], ['flood', { past: true }, 'too many messages'], ['huge', {}, 'more than 1 MB'], ['keys', {}, 'the keyboard focus']]) {
    await page.goto(g.url + badAppPath(name, args));
    await run(page);
    const stopped = page.locator('.note', { hasText: 'The app was stopped. It' }).filter({ hasText: reason });
    if (name === 'keys') {
      // A key press that is sent to the frame while the app is stopped is never acknowledged.
      const end = stopped.waitFor();
      await waitUntil(async () => {
        const pressed = page.getByRole('searchbox', { name: 'Search tools' }).press('x'); // like a typing user
        await Promise.race([pressed.catch(() => {}), end]);
        return stopped.isVisible();
      }, 'the app keeps the focus');
    }
    await stopped.waitFor();
    await waitForCount(page.locator('.app iframe'), 0);
    await page.goto(`${g.url}/#/tools`);
  }
  await page.goto(g.url + badAppPath('spin'));
  await run(page);
  await page.locator('.app iframe').waitFor();
  await page.getByRole('searchbox', { name: 'Search tools' }).fill('spin');
  await page.getByRole('button', { name: 'Close app' }).click();
  await waitForCount(page.locator('.app iframe'), 0);
}, { expected: expectedErrors }));

test('apps: a question of the page names the app that asks, and an app cannot draw outside its frame', withPage(badAppPath('phish'), async (page) => {
  await run(page);
  const app = appFrame(page, 'badapps');
  const frame = page.locator('.app iframe');
  await waitUntil(async () => (await frame.boundingBox()).height === 800, 'the frame does not have the maximum height');
  const [box, section] = [await frame.boundingBox(), await page.locator('.app').boundingBox()];
  assert.ok(box.x >= section.x && box.y >= section.y && box.width <= section.width);
  assert.ok(await page.locator('.app > header').isVisible());
  await app.locator('#ask').click();
  const question = page.getByRole('dialog', { name: 'Allow this call?' });
  await question.getByText('The app of badapps wants to run badapps:guarded').waitFor();
  await screenshot(page, 'app-approval');
  await question.getByRole('button', { name: 'Refuse' }).click();
  await app.getByText('the user did not allow the call').waitFor();
  assert.deepEqual(await calls(page, 'server=badapps&tool=guarded'), []);
  await app.locator('#ask').click();
  await question.getByRole('button', { name: 'Allow once' }).click();
  await app.getByText('guarded ran').waitFor();
  await app.locator('#ask').click();
  await question.getByRole('button', { name: 'Stop app' }).click();
  await page.getByText('The app was stopped. You stopped it.').waitFor();
}));
