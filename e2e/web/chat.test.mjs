// The chat of the page in a real browser, against the real binary.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { shared } from './page.mjs';
import { replyFinished, screenshot, sendMessage, servers, violations, waitForCount, waitForNoOverflow, waitUntil } from './fixture.mjs';
import { script } from './script.mjs';

const fixture = shared();
const { withPage, withOwnGateway, note } = fixture;

test('chat: a reply with a tool call, in Markdown', withPage('/#/chat', async (page) => {
  await sendMessage(page, 'What is the sum of 19 and 23?');
  await page.getByText('The sum is').waitFor();
  await waitForCount(page.locator('.turn.assistant strong', { hasText: '42' }), 1);
  await waitForCount(page.locator('.turn.assistant table td', { hasText: '42' }), 1);
  const card = page.getByRole('region', { name: /everything:get-sum, done/ });
  await card.getByRole('button').first().click();
  await card.getByText('The sum of 19 and 23 is 42').waitFor();
  await replyFinished(page);
  await page.getByText(/tokens/).first().waitFor();
  await page.waitForURL(/#\/chat\/.+/);
  await page.getByRole('link', { name: /What is the sum/ }).waitFor();
}));

test('chat: the message box appears with the session, and no input is lost', async (t) => {
  let release;
  const released = new Promise((done) => (release = done));
  const delaySession = (page) =>
    page.route('**/api/session', async (route) => {
      if (route.request().method() === 'GET') await released;
      await route.continue();
    });
  await withPage('/#/chat', async (page) => {
    await page.getByRole('navigation', { name: 'Views' }).waitFor();
    await page.getByRole('status', { name: 'Loading' }).first().waitFor();
    assert.equal(await page.getByRole('textbox', { name: 'Message' }).count(), 0);
    release();
    await sendMessage(page, 'at once');
    await page.getByText('You said: at once').waitFor();
    await replyFinished(page);
  }, { prepare: delaySession })(t);
});

test('chat: parallel calls are shown separately', withPage('/#/chat', async (page) => {
  await sendMessage(page, 'do both');
  await page.getByText('Both are done.').waitFor();
  await waitForCount(page.locator('.call.done'), 2);
}));

test('chat: a call waits for approval and can be denied or allowed', withPage('/#/chat', async (page) => {
  await sendMessage(page, 'please write a note');
  await page.getByRole('button', { name: 'Deny' }).click();
  await page.getByText('Then I will leave it.').waitFor();
  await replyFinished(page);
  assert.equal(existsSync(note), false);
  await sendMessage(page, 'please write a note');
  await page.getByRole('button', { name: 'Allow once' }).click();
  await page.getByText('It is written.').waitFor();
  assert.equal(readFileSync(note, 'utf8'), 'hello');
}));

test('chat: an always allowed tool is listed in the settings and needs approval again when revoked', withPage('/#/chat', async (page) => {
  await sendMessage(page, 'please write a note');
  await page.getByRole('button', { name: 'Always', exact: true }).click();
  await page.getByText('It is written.').waitFor();
  await replyFinished(page);
  await sendMessage(page, 'please write a note');
  await waitForCount(page.getByText('It is written.'), 2);
  await replyFinished(page);
  await page.goto(`${fixture.g.url}/#/settings`);
  const list = page.getByRole('group', { name: 'Always allowed tools' });
  await list.getByText('files:write_file').waitFor();
  await list.getByRole('button', { name: 'Revoke files:write_file' }).click();
  await page.getByText('None. The chat asks').waitFor();
  await page.goto(`${fixture.g.url}/#/chat`);
  await sendMessage(page, 'please write a note');
  await page.getByRole('button', { name: 'Deny' }).click();
  await replyFinished(page);
}));

test('chat: stopping keeps the partial reply', withPage('/#/chat', async (page) => {
  await sendMessage(page, 'a story without end');
  await page.getByText('Once upon a time').waitFor();
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByText('Stopped.').waitFor();
  await replyFinished(page);
  await sendMessage(page, 'thanks');
  await page.getByText('You said: thanks').waitFor();
}));

test('chat: the status of a task is shown, and stopping the reply cancels it; calls that were left are listed, shown and stopped', withPage('/#/chat', async (page, context) => {
  const { g } = fixture;
  const call = (tool) => context.request.post(`${g.url}/call_tool`, { data: { server: 'hostile', tool, arguments: {} } }).then((r) => r.text());
  const startDetachedCall = () => context.request.post(`${g.url}/execute`, { data: { provider: 'anthropic', call: { name: 'hostile__count', input: {} }, wait: false } });
  await sendMessage(page, 'How many words are there?');
  await page.getByRole('region', { name: /hostile:count, running/ }).getByText('working: counting words').waitFor();
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByText('Stopped.').waitFor();
  await replyFinished(page);
  await waitUntil(async () => (await call('tasks')).includes('cancelled'), 'the task goes on');

  await startDetachedCall();
  await page.goto(`${g.url}/#/activity`);
  await page.getByRole('tab', { name: 'Waiting' }).click();
  const row = page.getByRole('row', { name: /hostile:count/ });
  await row.filter({ hasText: 'working counting words' }).waitFor();
  await row.getByRole('button', { name: 'Stop hostile:count' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Stop the call' }).click();
  await row.filter({ hasText: 'cancelled' }).waitFor();
  await waitUntil(async () => (await call('tasks')).includes('cancelled,cancelled'), 'the task that was left goes on');

  await startDetachedCall();
  await row.filter({ hasText: 'counting words' }).getByRole('link').click();
  const details = page.getByRole('region', { name: 'Call details' });
  await details.getByText('counting words').waitFor();
  assert.deepEqual(await violations(page), []);
  await page.setViewportSize({ width: 390, height: 760 });
  await waitForNoOverflow(page, 'a waiting call');
  await call('release');
  await details.getByText('all words counted').waitFor();
  await details.getByText('completed').waitFor();
  await screenshot(page, 'waiting-call');
  await details.getByRole('link', { name: 'Close' }).click();
  await row.filter({ hasText: 'completed' }).waitFor();
  assert.deepEqual(await violations(page), []);
  await waitForNoOverflow(page, 'waiting calls');
  await screenshot(page, 'waiting-calls');
}));

const essay = 'Once upon a time there was a gateway. '.repeat(60).trim();
const replyText = async (page) => (await page.locator('.turn.assistant .prose').allInnerTexts()).join('').replace(/\s+/g, ' ').trim();
/** waitForEssay waits until the complete reply is shown. It polls instead of checking every frame, because that would lay out the text each time. */
const waitForEssay = (page) =>
  page.waitForFunction((length) => [...document.querySelectorAll('.turn.assistant .prose')].map((e) => e.innerText).join('').replace(/\s+/g, ' ').trim().length >= length, essay.length, { polling: 200 });

test('chat: reloading during a reply loses nothing', withPage('/#/chat', async (page) => {
  await sendMessage(page, 'write an essay');
  await page.getByText('Once upon a time').waitFor();
  await page.waitForURL(/#\/chat\/.+/);
  await page.reload();
  await waitForEssay(page);
  await replyFinished(page);
  assert.equal(await replyText(page), essay);
  await waitForCount(page.locator('.turn.user'), 1);
}));

test('chat: a connection lost twice during a reply loses and repeats nothing', async (t) => {
  let connections = 0;
  // The first connection is closed at the message after the first text: how
  // many messages follow depends on how the gateway batches the text. The second
  // one is closed early, because the reply may be almost complete by then.
  const dropConnections = (page) =>
    page.routeWebSocket(/\/ws(\?|$)/, (client) => {
      const server = client.connectToServer();
      const connection = ++connections;
      let remaining = connection === 2 ? 1 : Infinity;
      server.onMessage((m) => {
        if (remaining-- > 0) client.send(m);
        else client.close({ code: 4999 });
        if (connection === 1 && JSON.parse(m).type === 'text') remaining = 0;
      });
    });
  await withPage('/#/chat', async (page) => {
    await sendMessage(page, 'write an essay');
    await page.getByText('Once upon a time').waitFor();
    await waitForEssay(page);
    await replyFinished(page);
    assert.equal(await replyText(page), essay);
    assert.equal(connections, 3);
    await waitForCount(page.locator('.turn.user'), 1);
  }, { prepare: dropConnections })(t);
});

test('chat: reconnects after a gateway restart and sends a waiting message once', withOwnGateway({ restarts: true, script, config: { mcpServers: { everything: servers.everything } } }, '/', async (page, own) => {
  await sendMessage(page, 'hello there');
  await page.getByText('You said: hello there').waitFor();
  await replyFinished(page);
  await own.restart(async () => {
    await page.getByText('Reconnecting…', { exact: true }).waitFor();
    await sendMessage(page, 'are you back?');
    await page.getByText('Will be sent when the connection is restored').waitFor();
  });
  await page.getByText('You said: are you back?').waitFor();
  await replyFinished(page);
  await waitForCount(page.locator('.turn.user'), 2);
  await waitForCount(page.getByText('You said: hello there'), 1);

  // A reply that the restart interrupts, and a message that was typed during it.
  await sendMessage(page, 'tell a story without end');
  await page.getByText('Once upon a time').first().waitFor();
  await own.restart(async () => {
    await page.getByText('Reconnecting…', { exact: true }).waitFor();
    await page.getByRole('combobox', { name: 'Model' }).waitFor();
    await sendMessage(page, 'typed in between');
  });
  await page.getByText('You said: typed in between').waitFor();
  await replyFinished(page);

  // A reply that a crash interrupts: the interruption is shown once, with a retry.
  await sendMessage(page, 'tell a story without end');
  await page.getByRole('button', { name: 'Stop' }).waitFor();
  await page.locator('.turn.assistant').last().getByText('Once upon a time').first().waitFor();
  await own.restart(undefined, 'SIGKILL');
  await page.getByRole('button', { name: 'Retry' }).waitFor();
  await waitForCount(page.getByRole('button', { name: 'Retry' }), 1);
  await waitForCount(page.getByText('Interrupted: the gateway stopped before the reply was complete.'), 1);
  await waitForCount(page.locator('.chat-main .note.bad'), 0);
}));

test('chat: a message during a reply is sent after it; calls, durations and tokens survive a reload', withPage('/#/chat', async (page) => {
  await sendMessage(page, 'tell a story without end');
  await page.getByText('Once upon a time').first().waitFor();
  await sendMessage(page, 'do both');
  await page.getByText('Will be sent when the reply is finished').waitFor();
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByText('Both are done.').waitFor();
  await replyFinished(page);
  const shown = async () => ({
    calls: await page.locator('.call .call-name').allInnerTexts(),
    times: await page.locator('.call .call-time').allInnerTexts(),
    tokens: await page.locator('.usage').innerText(),
  });
  await page.locator('.usage').waitFor();
  const before = await shown();
  assert.equal(before.calls.length, 2);
  assert.ok(before.times.every((t) => /\d\s?m?s$/.test(t)), before.times.join());
  await page.reload();
  await page.getByText('Both are done.').waitFor();
  await page.locator('.usage').waitFor();
  assert.deepEqual(await shown(), before);
}));

test('chat: rename, export and delete conversations', withPage('/#/chat', async (page) => {
  await sendMessage(page, 'to be renamed');
  await page.getByText('You said: to be renamed').waitFor();
  await replyFinished(page);
  await page.getByRole('button', { name: 'Actions for to be renamed' }).click();
  await page.getByRole('button', { name: 'Rename', exact: true }).click();
  await page.getByLabel('Title').fill('Renamed <b>');
  await page.getByRole('dialog').getByRole('button', { name: 'Rename' }).click();
  await page.getByRole('heading', { name: 'Renamed <b>' }).waitFor();
  await page.getByRole('button', { name: 'Actions for Renamed' }).click();
  const saving = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Markdown' }).click();
  assert.match(readFileSync(await (await saving).path(), 'utf8'), /^# Renamed <b>/);
  await page.getByRole('button', { name: 'Actions for Renamed' }).click();
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('link', { name: /Renamed/ }).waitFor({ state: 'detached' });
  await page.getByRole('heading', { name: 'New chat' }).waitFor();
}));

test('chat: the chosen model answers, and its errors are shown', withPage('/#/chat', async (page) => {
  await page.getByLabel('Model').selectOption('anthropic/claude-test');
  await sendMessage(page, 'hello claude');
  await page.getByText('You said: hello claude').waitFor();
  await replyFinished(page);
  await page.locator('.turn-foot', { hasText: 'anthropic/claude-test' }).waitFor();
  await sendMessage(page, 'fail now');
  await page.getByText('the model does not like this').waitFor(); // once
  await page.getByRole('button', { name: 'Retry' }).click();
  await page.locator('.turn.fallback').getByRole('group', { name: 'Versions' }).getByText('2/2').waitFor();
  await replyFinished(page);
  assert.equal(await page.getByLabel('Model').inputValue(), 'anthropic/claude-test');
  await page.getByRole('button', { name: 'New chat' }).click(); // the choice is remembered
  await page.getByRole('heading', { name: 'New chat' }).waitFor();
  await page.reload();
  await page.waitForFunction(() => document.querySelector('select[aria-label=Model]')?.value === 'anthropic/claude-test');
  await sendMessage(page, 'claude again');
  await page.locator('.turn-foot', { hasText: 'anthropic/claude-test' }).waitFor();
}));

test('chat: older conversations are loaded on request', withOwnGateway({ script }, '/', async (page) => {
  // A hundred and some conversations, created through the WebSocket API.
  await page.evaluate(async (n) => {
    const begin = (i) =>
      new Promise((done, fail) => {
        const ws = new WebSocket(`ws://${location.host}/ws`);
        ws.onopen = () => ws.send(JSON.stringify({ type: 'message', payload: { text: `number ${i}` } }));
        ws.onmessage = (e) => {
          const m = JSON.parse(e.data);
          if (m.type === 'status' && m.payload.state === 'complete' && !m.payload.tool) done(ws.close());
        };
        ws.onerror = fail;
      });
    for (let i = 0; i < n; i += 10) await Promise.all(Array.from({ length: 10 }, (_, j) => begin(i + j)));
  }, 110);
  await page.reload();
  const rows = page.getByRole('navigation', { name: 'Conversations' }).getByRole('listitem');
  await waitForCount(rows, 100);
  await page.getByRole('button', { name: 'Show older' }).click();
  await page.waitForFunction(() => document.querySelectorAll('.sessions li').length === 110);
  await page.getByRole('button', { name: 'Show older' }).waitFor({ state: 'detached' });
}));

test('chat: a refused message is restored for editing', withPage('/#/chat', async (page) => {
  await sendMessage(page, 'x'.repeat(300_000));
  await page.getByText(/has 300000 bytes/).waitFor();
  assert.equal((await page.getByRole('textbox', { name: 'Message' }).inputValue()).length, 300_000);
}));

test('chat: works at 380 px', withPage('/#/chat', async (page) => {
  await page.getByRole('button', { name: 'Conversations' }).click();
  await page.getByRole('button', { name: 'New chat' }).click();
  await sendMessage(page, 'What is the sum of 19 and 23?');
  await page.getByText('The sum is').waitFor();
  await page.getByRole('region', { name: /get-sum/ }).getByRole('button').first().click();
  await waitForNoOverflow(page, 'the chat');
  await page.getByRole('link', { name: 'Tools' }).click();
  await page.locator('.tool-row').first().click();
  await page.getByRole('link', { name: 'Back to the list' }).click();
  await page.locator('.tool-row').first().waitFor();
}, { viewport: { width: 380, height: 760 } }));

test('chat: edit a message, answer again, go back to a branch; the model writes the title', withPage('/#/chat', async (page) => {
  await sendMessage(page, 'name this please');
  await page.getByText('You said: name this please').waitFor();
  await replyFinished(page);
  await page.getByRole('heading', { name: 'A fitting title', exact: true }).waitFor();

  const userMessage = page.getByRole('article', { name: 'Your message' });
  await userMessage.hover();
  await page.getByRole('button', { name: 'Edit message' }).click();
  await page.getByLabel('Edited message').fill('changed my mind');
  await page.getByRole('button', { name: 'Send edited' }).click();
  await page.getByText('You said: changed my mind').waitFor();
  await waitForCount(page.getByText('You said: name this please'), 0);
  await replyFinished(page);
  await page.getByRole('group', { name: 'Versions' }).getByText('2/2').waitFor();
  await screenshot(page, 'chat-branches');
  assert.deepEqual(await violations(page), []);
  await page.getByRole('button', { name: 'Previous version' }).click();
  await page.getByText('You said: name this please').waitFor();
  await page.getByRole('button', { name: 'Answer again' }).click();
  await page.getByRole('article', { name: 'Reply' }).getByRole('group', { name: 'Versions' }).getByText('2/2').waitFor();
  await page.reload();
  await page.getByRole('article', { name: 'Reply' }).getByText('2/2').waitFor();
}));

test('chat: attach files, settings of one chat, pin and search conversations', withPage('/#/chat', async (page) => {
  await page.getByRole('button', { name: 'Settings of this chat' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('System prompt').fill('Answer briefly.');
  await dialog.getByLabel('Temperature').fill('0.2');
  await dialog.getByLabel('memory', { exact: true }).uncheck();
  assert.deepEqual(await violations(page), []);
  await screenshot(page, 'chat-preferences');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await page.getByLabel('Files to attach').setInputFiles([
    { name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('the word is xyzzy') },
    { name: 'dot.png', mimeType: 'image/png', buffer: Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64') },
  ]);
  await page.getByRole('group', { name: 'Attachments' }).getByText('dot.png').waitFor();
  await sendMessage(page, 'look at the quokka');
  await page.getByText(/You said: look at the quokka/).waitFor();
  await replyFinished(page);
  await page.getByRole('article', { name: 'Your message' }).getByText('notes.txt').waitFor();
  await page.reload();
  await page.getByRole('img', { name: 'Your image' }).waitFor();
  await page.getByRole('button', { name: 'Settings of this chat' }).click();
  assert.equal(await dialog.getByLabel('System prompt').inputValue(), 'Answer briefly.');
  assert.equal(await dialog.getByLabel('memory', { exact: true }).isChecked(), false);
  await dialog.getByRole('button', { name: 'Cancel' }).click();

  await page.getByRole('button', { name: /Actions for look at the quokka/ }).click();
  await page.getByRole('button', { name: 'Pin', exact: true }).click();
  await page.locator('.sessions li').first().getByText('look at the quokka').waitFor();
  await page.getByLabel('Search conversations').fill('QUOKKA');
  await waitForCount(page.locator('.sessions li'), 1);
  await screenshot(page, 'chat-search');
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: /^Find/ }).fill('quokka');
  await page.getByRole('option', { name: /look at the quokka/ }).waitFor();
}));

test('chat: formulas are MathML, code is highlighted, prices stay text', withPage('/#/chat', async (page) => {
  await sendMessage(page, 'a formula');
  const reply = page.getByRole('article', { name: 'Reply' });
  await waitForCount(reply.locator('math'), 2);
  await reply.locator('math mfrac').waitFor();
  await reply.locator('.hljs-keyword').first().waitFor();
  await reply.getByText('It costs $5 or $10.').waitFor();
  await replyFinished(page);
  await screenshot(page, 'chat-formula');
  assert.deepEqual(await violations(page), []);
}));
