// Unsent messages and files are never lost, and failed actions report an error.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { gateway, launchBrowser, pageTests, replyFinished, sendMessage, servers, waitForCount } from './fixture.mjs';
import { script } from './script.mjs';

const fixture = {};
before(async () => {
  fixture.chrome = await launchBrowser();
  fixture.g = await gateway({ script, config: { mcpServers: { everything: servers.everything }, chat: { maxAttachmentBytes: 1000 } }, tools: ['everything:echo'] });
  await fixture.g.addProxy(); // the URL stays the same over a restart
});
after(async () => {
  await fixture.chrome?.close();
  await fixture.g?.stop();
});
const withPage = pageTests(() => fixture);

const box = (page) => page.getByRole('textbox', { name: 'Message' });
const chips = (page) => page.getByRole('group', { name: 'Attachments' });
const file = (name, size = 5) => ({ name, mimeType: 'text/plain', buffer: Buffer.alloc(size, 'x') });
const attach = async (page, ...files) => {
  await page.getByLabel('Files to attach').setInputFiles(files);
  await chips(page).getByText(files.at(-1).name).waitFor();
};
const waitForDraft = (page, text) => page.waitForFunction((t) => document.getElementById('message-input')?.value === t, text);
const newChat = async (page) => {
  await page.getByRole('button', { name: 'New chat' }).click();
  await page.getByRole('heading', { name: 'New chat' }).waitFor();
};
/** startEndlessReply starts a conversation whose reply does not end, and returns its URL. */
const startEndlessReply = async (page, text) => {
  await sendMessage(page, `${text}: a story without end`);
  await page.getByText('Once upon a time').first().waitFor();
  await page.waitForURL(/#\/chat\/.+/);
  return page.url();
};
const stop = async (page) => {
  await page.getByRole('button', { name: 'Stop' }).click();
  await replyFinished(page);
};

test('chat: attachments that are too large are refused before they are sent, and stay', withPage('/#/chat', async (page) => {
  // So large that the gateway would close the connection.
  await attach(page, file('big.txt', 4_000_000));
  await sendMessage(page, 'look');
  await page.getByRole('alert').getByText('the attachments have more than 1000 bytes').waitFor();
  await waitForDraft(page, 'look');
  await chips(page).getByText('big.txt').waitFor();
  await page.getByRole('button', { name: 'Remove big.txt' }).click();
  await box(page).press('Enter');
  await page.getByText('You said: look').waitFor();
  await waitForCount(page.locator('.turn.user'), 1);
  await waitForCount(page.getByRole('alert'), 0);
}));

test('chat: files stay in the conversation where they were chosen', async (t) => {
  // File reads are delayed until the test releases them.
  const delayFileReads = (page) =>
    page.addInitScript(() => {
      const read = FileReader.prototype.readAsDataURL;
      const delayedReads = [];
      FileReader.prototype.readAsDataURL = function (f) {
        delayedReads.push(() => read.call(this, f));
      };
      window.releaseFiles = () => delayedReads.splice(0).forEach((f) => f());
    });
  const choose = (page, name) => page.getByLabel('Files to attach').setInputFiles([file(name)]);
  await withPage('/#/chat', async (page) => {
    await choose(page, 'new.txt');
    const first = await startEndlessReply(page, 'files'); // it gets its URL before the file is read
    await stop(page);
    await newChat(page);
    await page.evaluate(() => window.releaseFiles());
    await page.goto(first);
    await chips(page).getByText('new.txt').waitFor();
    await choose(page, 'late.txt');
    await newChat(page);
    await page.evaluate(() => window.releaseFiles());
    await page.goto(first);
    await chips(page).getByText('late.txt').waitFor();
    await newChat(page);
    await waitForCount(chips(page), 0);
    await sendMessage(page, 'no files here');
    await page.getByText('You said: no files here').waitFor();
    await waitForCount(page.getByRole('article', { name: 'Your message' }).locator('.chip'), 0);
    await page.getByRole('link', { name: 'Tools', exact: true }).click();
    await page.locator('.tool-row').first().waitFor();
    await page.goto(first);
    await waitForCount(chips(page).locator('.chip'), 2); // other views keep them, too
  }, { prepare: delayFileReads })(t);
});

test('chat: a withdrawn or refused message is restored before the draft, with its files', withPage('/#/chat', async (page) => {
  await startEndlessReply(page, 'back');
  await attach(page, file('a.txt'));
  await sendMessage(page, 'queued');
  await page.getByText('Will be sent when the reply is finished').waitFor();
  await attach(page, file('b.txt'));
  await box(page).fill('typed since');
  await page.getByRole('button', { name: 'Edit', exact: true }).click();
  await waitForDraft(page, 'queued\n\ntyped since');
  assert.deepEqual(await chips(page).locator('.chip .ellipsis').allInnerTexts(), ['a.txt', 'b.txt']);

  // Files alone.
  await box(page).fill('');
  await box(page).press('Enter');
  await page.getByText('Will be sent when the reply is finished').waitFor();
  await waitForCount(chips(page), 0);
  await page.getByRole('button', { name: 'Edit', exact: true }).click();
  await waitForCount(chips(page).locator('.chip'), 2);
  await page.getByRole('button', { name: 'Stop' }).click();
  await replyFinished(page);

  // A refusal after that is restored and explained.
  await sendMessage(page, 'x'.repeat(300_000));
  await page.getByText(/has 300000 bytes/).waitFor();
  await waitForDraft(page, 'x'.repeat(300_000));
  await waitForCount(chips(page).locator('.chip'), 2);
}));

test('chat: a message that waits when the user leaves becomes the draft of its conversation', withPage('/#/chat', async (page) => {
  const first = await startEndlessReply(page, 'leave');
  await attach(page, file('a.txt'));
  await sendMessage(page, 'for later');
  await page.getByText('Will be sent when the reply is finished').waitFor();
  await box(page).fill('typed since');
  await newChat(page);
  await waitForDraft(page, '');
  await waitForCount(chips(page), 0);
  await page.goto(first);
  await waitForDraft(page, 'for later\n\ntyped since');
  await chips(page).getByText('a.txt').waitFor();

  await box(page).press('Enter');
  await page.getByText('Will be sent when the reply is finished').waitFor();
  await page.getByRole('link', { name: 'Tools', exact: true }).click();
  await page.locator('.tool-row').first().waitFor();
  await page.goto(first);
  await waitForDraft(page, 'for later\n\ntyped since');
  await chips(page).getByText('a.txt').waitFor();
  await stop(page);
}));

test('chat: Retry answers the same message again, with its files', withPage('/#/chat', async (page) => {
  await attach(page, file('a.txt'));
  await sendMessage(page, 'fail with a file');
  await page.getByRole('button', { name: 'Retry' }).click();
  await page.getByRole('article', { name: 'Reply' }).getByRole('group', { name: 'Versions' }).getByText('2/2').waitFor();
  await waitForCount(page.getByRole('article', { name: 'Your message' }), 1);
  await page.getByRole('article', { name: 'Your message' }).getByText('a.txt').waitFor();
}));

test('an export and the arguments of an earlier run that cannot be read are reported', withPage('/#/activity', async (page, context) => {
  const { g } = fixture;
  await context.request.post(`${g.url}/call_tool`, { data: { server: 'everything', tool: 'echo', arguments: { message: 'hi' } } });
  await page.route('**/api/export?*', (route) => route.fulfill({ status: 503, json: { code: 'UNAVAILABLE', message: 'no export now' } }));
  await page.getByRole('button', { name: 'Export' }).click();
  await page.getByText('no export now').waitFor();
  await page.route('**/api/calls/*', (route) => route.fulfill({ status: 503, json: { code: 'UNAVAILABLE', message: 'no call now' } }));
  await page.goto(`${g.url}/#/tools/everything/echo`);
  await page.getByRole('button', { name: 'Use arguments' }).first().click();
  await page.getByText('no call now').waitFor();
}));

test('settings: Try again reads the schema of the configuration, too', async (t) => {
  for (const [path, shown] of [['config', 'Search settings'], ['models', 'Add model']]) {
    let fail = true;
    const refuse = (page) => page.route('**/api/config/schema', (route) => (fail ? route.fulfill({ status: 503, json: { code: 'UNAVAILABLE', message: 'no schema now' } }) : route.continue()));
    await withPage(`/#/settings/${path}`, async (page) => {
      await page.getByText('no schema now').waitFor();
      fail = false;
      await page.getByRole('button', { name: 'Try again' }).click();
      await page.getByLabel(shown).or(page.getByRole('button', { name: shown })).first().waitFor();
    }, { prepare: refuse })(t);
  }
});

test('chat: settings that cannot be saved without a connection stay in the dialog', withPage('/#/chat', async (page) => {
  await sendMessage(page, 'hello');
  await page.getByText('You said: hello').waitFor();
  await replyFinished(page);
  const dialog = page.getByRole('dialog');
  await fixture.g.restart(async () => {
    await page.getByText('Reconnecting…', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Settings of this chat' }).click();
    await dialog.getByLabel('System prompt').fill('Answer briefly.');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByText('Not connected. Try again when the connection is restored.').waitFor();
  });
  await page.getByText('Reconnecting…', { exact: true }).waitFor({ state: 'detached' });
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Settings of this chat' }).click();
  assert.equal(await dialog.getByLabel('System prompt').inputValue(), 'Answer briefly.');
}));
