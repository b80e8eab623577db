// Elicitation, sampling and media results in the chat, with a real server and a
// real browser.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { gateway, launchBrowser, pageTests, replyFinished, screenshot, sendMessage, servers, violations, waitForCount, waitForNoOverflow } from './fixture.mjs';
import { questions } from './script.mjs';

const home = mkdtempSync(join(tmpdir(), 'junctor-ask-'));
let g, chrome, site, address;

before(async () => {
  site = createServer((_, res) => res.end('You are signed in.'));
  await new Promise((done) => site.listen(0, '127.0.0.1', done));
  address = `http://127.0.0.1:${site.address().port}/sign-in?for=ada`;
  chrome = await launchBrowser();
  g = await gateway({ home, script: questions(address), config: { mcpServers: { everything: servers.everything, hostile: servers.hostile } }, tools: ['everything:trigger-elicitation-request', 'everything:trigger-url-elicitation', 'everything:trigger-sampling-request', 'everything:get-tiny-image', 'hostile:sound'] });
});
after(async () => {
  await chrome?.close();
  await g?.stop();
  site?.close();
  rmSync(home, { recursive: true, force: true });
});
const withPage = pageTests(() => ({ chrome, g }));
const requestRegion = (page) => page.getByRole('region', { name: 'Request from everything' });

test('a form is validated and sent', withPage('/#/chat', async (page) => {
  await sendMessage(page, 'ask me');
  const form = requestRegion(page);
  await form.getByLabel(/^String\*?$/).first().waitFor();
  await screenshot(page, 'light-1280-question-form');
  assert.deepEqual(await violations(page), []);
  const send = form.getByRole('button', { name: 'Send to everything' });
  await form.getByLabel('Integer').fill('400');
  await send.click();
  await form.locator('.error-detail').first().waitFor(); // the form checks before anything is sent
  await form.getByLabel('Integer').fill('7');
  await form.getByLabel(/^String\*?$/).first().fill('Ada Lovelace');
  await form.getByLabel('Salmon').check();
  await send.click();
  await page.getByText(/It got[\s\S]*Ada Lovelace/).waitFor();
  await replyFinished(page);
  const replyText = await page.locator('.turn.assistant').innerText();
  assert.match(replyText, /7/);
  assert.match(replyText, /fish-1[\s\S]*fish-2/);
  await page.getByRole('region', { name: /trigger-elicitation-request, done/ }).getByRole('button').first().click();
  await page.getByText('Request from everything. You answered.').waitFor();
}));

test('a form is shown together with its buttons, which then do not move', withPage('/#/chat', async (page) => {
  let releaseForm;
  const released = new Promise((done) => (releaseForm = done));
  await page.route(/\/form-[^/]*\.js$/, (route) => released.then(() => route.continue()));
  const requested = page.waitForRequest(/\/form-[^/]*\.js$/);
  await sendMessage(page, 'ask me');
  await requested;
  await page.getByText('needs your answer').first().waitFor();
  assert.equal(await page.getByRole('button', { name: 'Decline' }).count(), 0);
  releaseForm();
  await requestRegion(page).getByRole('button', { name: 'Decline' }).click();
  await replyFinished(page);
}));

test('a question that waits elsewhere is marked at once, without polling', withPage('/#/chat', async (page) => {
  await sendMessage(page, 'ask me');
  await requestRegion(page).getByRole('button', { name: 'Decline' }).waitFor();
  await page.getByRole('link', { name: /^Tools/ }).click();
  const marked = page.getByRole('link', { name: /^Chat 1 waiting for your answer/ });
  await marked.waitFor();
  await page.locator('.tool-row').first().waitFor();
  const requestUrls = [];
  page.on('request', (r) => requestUrls.push(r.url()));
  await page.reload();
  await marked.waitFor();
  await page.waitForFunction(() => document.title.startsWith('(1) Tools'));
  assert.deepEqual(requestUrls.filter((u) => u.includes('/api/sessions')), []);
  await page.goBack();
  await requestRegion(page).getByRole('button', { name: 'Decline' }).click();
  await replyFinished(page);
}));

for (const [button, result] of [['Decline', 'declined'], ['Cancel', 'cancel']]) {
  test(`a form can be dismissed with ${button}`, withPage('/#/chat', async (page) => {
    await sendMessage(page, 'ask me');
    await requestRegion(page).getByRole('button', { name: button }).click();
    await page.getByText(new RegExp(`It got.*${result}`, 'i')).waitFor();
    await replyFinished(page);
  }));
}

test('a question survives a reload, is shown in a second tab, and is answered once', withPage('/#/chat', async (page, context) => {
  await sendMessage(page, 'ask me');
  await requestRegion(page).waitFor();
  await page.waitForURL(/#\/chat\/.+/);
  await page.reload();
  await requestRegion(page).getByRole('button', { name: 'Decline' }).waitFor();
  const second = await context.newPage();
  await second.goto(page.url());
  await requestRegion(second).getByRole('button', { name: 'Decline' }).click();
  await page.getByText(/It got/).waitFor();
  await waitForCount(requestRegion(page), 0);
  await replyFinished(page);
}));

test('stopping the reply ends the question', withPage('/#/chat', async (page) => {
  await sendMessage(page, 'ask me');
  await requestRegion(page).waitFor();
  await page.getByRole('button', { name: 'Stop' }).click();
  await replyFinished(page);
  await waitForCount(requestRegion(page), 0);
}));

test('a URL is shown in full and opened only on click', withPage('/#/chat', async (page, context) => {
  await sendMessage(page, 'send me');
  await requestRegion(page).getByText(address).waitFor();
  await screenshot(page, 'light-1280-question-address');
  assert.deepEqual(await violations(page), []);
  assert.equal(context.pages().length, 1); // nothing is opened without a click
  const opening = context.waitForEvent('page');
  await requestRegion(page).getByRole('link', { name: /Open 127\.0\.0\.1/ }).click();
  const tab = await opening;
  await tab.getByText('You are signed in.').waitFor();
  assert.equal(await tab.evaluate(() => window.opener), null);
  await page.getByText(/It got/).waitFor();
}));

test('a call is retried after its URL was visited', withPage('/#/chat', async (page) => {
  await sendMessage(page, 'first there');
  await requestRegion(page).getByText('https://modelcontextprotocol.io').first().waitFor();
  await requestRegion(page).getByRole('button', { name: 'Done, continue' }).click();
  await requestRegion(page).getByText(address).waitFor(); // the second call sends an ordinary elicitation request
  await requestRegion(page).getByRole('button', { name: 'Decline' }).click();
  await page.getByText(/It got/).waitFor();
}));

test('a sampling request is denied, allowed, and allowed for this chat', withPage('/#/chat', async (page) => {
  await sendMessage(page, 'use the model');
  await requestRegion(page).getByText(/context: a line/).waitFor();
  await screenshot(page, 'light-1280-question-model');
  assert.deepEqual(await violations(page), []);
  await requestRegion(page).getByRole('button', { name: 'Deny' }).click();
  await page.getByText(/did not allow/).first().waitFor();
  await replyFinished(page);
  await sendMessage(page, 'use the model again');
  await requestRegion(page).getByRole('button', { name: 'In this chat' }).click();
  await page.getByText(/It got[\s\S]*A line from the model/).waitFor();
  await replyFinished(page);
  await sendMessage(page, 'use the model once more');
  await page.waitForFunction(() => document.body.innerText.match(/It got[^]*?A line from the model/g)?.length === 2);
}));

test('questions fit at 380 px in the dark theme', withPage('/#/chat', async (page) => {
  for (const [text, name] of [['ask me', 'form'], ['send me', 'address'], ['use the model', 'model']]) {
    await page.goto(g.url + '/#/chat');
    await page.reload();
    await sendMessage(page, text);
    await requestRegion(page).waitFor();
    if (name === 'form') await requestRegion(page).getByLabel(/^String\*?$/).first().waitFor();
    await screenshot(page, `dark-380-question-${name}`);
    assert.deepEqual(await violations(page), []);
    await waitForNoOverflow(page, name);
    await page.getByRole('button', { name: 'Stop' }).click();
    await replyFinished(page);
  }
}, { colorScheme: 'dark', viewport: { width: 380, height: 760 } }));

test('a tool that asks for input, run from its form, asks there', withPage('/#/tools/everything/trigger-elicitation-request', async (page) => {
  const run = page.getByRole('button', { name: 'Run', exact: true });
  await run.click();
  await requestRegion(page).getByLabel(/^String\*?$/).first().fill('Ada Lovelace');
  await screenshot(page, 'light-1280-run-question');
  assert.deepEqual(await violations(page), []);
  await requestRegion(page).getByRole('button', { name: 'Send to everything' }).click();
  await page.locator('.answer').getByText(/Name: Ada Lovelace/).first().waitFor();
  await page.getByText('Request from everything. You answered.').waitFor();
  await run.click();
  await requestRegion(page).getByRole('button', { name: 'Decline' }).click();
  await page.locator('.answer').getByText(/declined/).first().waitFor();
}));

test('images and audio are shown without opening the call, also after a reload', withPage('/#/chat', async (page) => {
  await sendMessage(page, 'a picture');
  await page.getByText('Look and listen.').waitFor();
  const checkMedia = async () => {
    await page.locator('.call-media img').waitFor();
    assert.ok(await page.locator('.call-media img').evaluate((i) => i.decode().then(() => i.naturalWidth > 0)));
    await page.waitForFunction(() => document.querySelector('.call-media audio')?.readyState >= 1);
  };
  await checkMedia();
  await replyFinished(page);
  await screenshot(page, 'light-1280-media');
  await page.reload();
  await checkMedia();
}));
