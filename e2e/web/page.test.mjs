// The web page in a real browser against the real binary, real MCP servers and
// a scripted model. One gateway serves the tests in turn, as it would a person.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { browser, gateway, guarded, holding, open, patience, say, servers, settled, shot, sideways, violations } from './rig.mjs';
import { script } from './script.mjs';

const home = mkdtempSync(join(tmpdir(), 'junctor-page-'));
const folder = join(home, 'notes');
const note = join(folder, 'note.txt');
const long = 'a-server-with-quite-a-long-name-that-does-not-want-to-end'; // must not push anything aside
let g;
let chrome;

before(async () => {
  mkdirSync(folder);
  chrome = await browser();
  g = await gateway({
    home,
    script: JSON.parse(JSON.stringify(script).replaceAll('{{note}}', note)),
    config: {
      mcpServers: { everything: servers.everything, memory: servers.memory, files: servers.files(folder), hostile: servers.hostile, broken: { command: '/nonexistent/program' }, [long]: { ...servers.memory, enabled: false } },
      toolRules: [
        { pattern: 'files:write_file', approval: 'ask' },
        { pattern: 'everything:*', tags: ['demo'] },
        { pattern: 'memory:delete_*', enabled: false },
      ],
    },
  });
});
after(async () => {
  await chrome?.close();
  await g?.stop();
  rmSync(home, { recursive: true, force: true });
});

const on = holding(() => ({ chrome, g, home }));

test('chat: a reply with a tool call, in Markdown', on('/#/chat', async (page) => {
  await say(page, 'What is the sum of 19 and 23?');
  await page.getByText('The sum is').waitFor();
  assert.equal(await page.locator('.turn.assistant strong', { hasText: '42' }).count(), 1);
  assert.equal(await page.locator('.turn.assistant table td', { hasText: '42' }).count(), 1);
  const card = page.getByRole('region', { name: /everything:get-sum, done/ });
  await card.getByRole('button').first().click();
  await card.getByText('The sum of 19 and 23 is 42').waitFor();
  await settled(page);
  await page.getByText(/tokens/).first().waitFor();
  assert.match(page.url(), /#\/chat\/.+/);
  await page.getByRole('link', { name: /What is the sum/ }).waitFor();
}));

test('chat: parallel calls are two cards', on('/#/chat', async (page) => {
  await say(page, 'do both');
  await page.getByText('Both are done.').waitFor();
  assert.equal(await page.locator('.call.done').count(), 2);
}));

test('chat: a call waits for approval, is denied, and is allowed', on('/#/chat', async (page) => {
  await say(page, 'please write a note');
  await page.getByRole('button', { name: 'Deny' }).click();
  await page.getByText('Then I will leave it.').waitFor();
  await settled(page);
  assert.equal(existsSync(note), false);
  await say(page, 'please write a note');
  await page.getByRole('button', { name: 'Allow once' }).click();
  await page.getByText('It is written.').waitFor();
  assert.equal(readFileSync(note, 'utf8'), 'hello');
}));

test('chat: stop leaves what was said', on('/#/chat', async (page) => {
  await say(page, 'write an essay');
  await page.getByText('Once upon a time').waitFor();
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByText('Stopped.').waitFor();
  await settled(page);
  await say(page, 'thanks');
  await page.getByText('You said: thanks').waitFor();
}));

const essay = 'Once upon a time there was a gateway. '.repeat(60).trim();
const said = async (page) => (await page.locator('.turn.assistant .prose').allInnerTexts()).join('').replace(/\s+/g, ' ').trim();

test('chat: a reload in mid-reply loses nothing', on('/#/chat', async (page) => {
  await say(page, 'write an essay');
  await page.getByText('Once upon a time').waitFor();
  await page.waitForURL(/#\/chat\/.+/);
  await page.reload();
  await page.getByText('Once upon a time').waitFor();
  await settled(page);
  assert.equal(await said(page), essay);
  assert.equal(await page.locator('.turn.user').count(), 1);
}));

test('chat: a line that drops in mid-reply, twice, loses nothing and says nothing twice', async () => {
  let lines = 0;
  // The line passes some messages on and is then cut, without a word to either side.
  const cut = (page) =>
    page.routeWebSocket(/\/ws(\?|$)/, (near) => {
      const far = near.connectToServer();
      let left = ++lines <= 2 ? 25 : Infinity;
      far.onMessage((m) => {
        if (left-- > 0) near.send(m);
        else near.close({ code: 4999 });
      });
    });
  await on('/#/chat', async (page) => {
    await say(page, 'write an essay');
    await page.getByText('Once upon a time').waitFor();
    await page.waitForFunction((whole) => [...document.querySelectorAll('.turn.assistant .prose')].map((e) => e.innerText).join('').replace(/\s+/g, ' ').trim().length >= whole, essay.length);
    await settled(page);
    assert.equal(await said(page), essay);
    assert.equal(lines, 3);
    assert.equal(await page.locator('.turn.user').count(), 1);
  }, { prepare: cut })();
});

test('chat: a restart of the gateway is survived, and what was typed meanwhile arrives once', async () => {
  const own = await gateway({ script, config: { mcpServers: { everything: servers.everything } } });
  const { page, context, wrong } = await open(chrome, own.url);
  try {
    await say(page, 'hello there');
    await page.getByText('You said: hello there').waitFor();
    await settled(page);
    await own.restart(async () => {
      await page.getByText('Reconnecting').waitFor();
      await say(page, 'are you back?');
      await page.getByText('Will be sent when the gateway is back').waitFor();
    });
    await page.getByText('You said: are you back?').waitFor();
    await settled(page);
    assert.equal(await page.locator('.turn.user').count(), 2);
    assert.equal(await page.getByText('You said: hello there').count(), 1);
    assert.deepEqual(wrong, []);
  } finally {
    await context.close();
    await own.stop();
  }
});

test('chat: conversations are renamed, exported and deleted', on('/#/chat', async (page) => {
  await say(page, 'to be renamed');
  await page.getByText('You said: to be renamed').waitFor();
  await settled(page);
  await page.getByRole('button', { name: 'Actions for to be renamed' }).click();
  await page.getByRole('button', { name: 'Rename', exact: true }).click();
  await page.getByLabel('Title').fill('Renamed <b>');
  await page.getByRole('dialog').getByRole('button', { name: 'Rename' }).click();
  await page.getByRole('heading', { name: 'Renamed <b>' }).waitFor();
  await page.getByRole('button', { name: 'Actions for Renamed' }).click();
  const saving = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Markdown' }).click();
  assert.match(readFileSync(await (await saving).path(), 'utf8'), /^# Renamed <b>/);
  await page.getByRole('button', { name: 'Actions for Renamed' }).click();
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('link', { name: /Renamed/ }).waitFor({ state: 'detached' });
  await page.getByRole('heading', { name: 'New chat' }).waitFor();
}));

test('chat: another model answers when it is chosen; a failing one is explained', on('/#/chat', async (page) => {
  await page.getByLabel('Model').selectOption('anthropic/claude-test');
  await say(page, 'hello claude');
  await page.getByText('You said: hello claude').waitFor();
  await settled(page);
  await page.locator('.turn-foot', { hasText: 'anthropic/claude-test' }).waitFor();
  await say(page, 'fail now');
  await page.getByText('the model does not like this').waitFor(); // once
  await page.getByRole('button', { name: 'Ask again' }).click();
  await page.waitForFunction(() => document.querySelectorAll('.turn.fallback').length === 2);
  await settled(page);
  assert.equal(await page.getByLabel('Model').inputValue(), 'anthropic/claude-test');
  await page.getByRole('button', { name: 'New chat' }).click(); // the choice was for the other conversation
  await page.getByRole('heading', { name: 'New chat' }).waitFor();
  await page.waitForFunction(() => document.querySelector('select[aria-label=Model]').value === 'openai/gpt-test');
}));

test('chat: more conversations than fit are shown when asked for', async () => {
  const own = await gateway({ script });
  const { page, context, wrong } = await open(chrome, own.url);
  try {
    // A hundred and some conversations, begun as any program begins them.
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
    await rows.first().waitFor();
    assert.equal(await rows.count(), 100);
    await page.getByRole('button', { name: 'Show older' }).click();
    await page.waitForFunction(() => document.querySelectorAll('.sessions li').length === 110);
    await page.getByRole('button', { name: 'Show older' }).waitFor({ state: 'detached' });
    assert.deepEqual(wrong, []);
  } finally {
    await context.close();
    await own.stop();
  }
});

test('chat: what the gateway refuses comes back to be mended', on('/#/chat', async (page) => {
  await say(page, 'x'.repeat(300_000));
  await page.getByText(/has 300000 bytes/).waitFor();
  assert.equal((await page.getByRole('textbox', { name: 'Message' }).inputValue()).length, 300_000);
}));

test('tools: found as one types, and run from a form', on('/#/tools', async (page) => {
  const box = page.getByRole('searchbox', { name: 'Search tools' });
  await page.locator('.tool-row').first().waitFor();
  await page.keyboard.press('/');
  await box.pressSequentially('add two numbers');
  await page.locator('.tool-row').filter({ hasText: 'get-sum' }).first().waitFor();
  await box.press('ArrowDown');
  assert.equal(await page.evaluate(() => document.activeElement?.classList.contains('tool-row')), true);
  await page.locator('.tool-row').filter({ hasText: 'get-sum' }).first().click();
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByText('is required').first().waitFor(); // the form checks before anything is called
  await page.getByLabel(/^a/).fill('2');
  await page.getByLabel(/^b/).fill('40');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByText('The sum of 2 and 40 is 42').waitFor();
  for (const [tab, text] of [['curl', /call_tool/], ['Python', /gateway\.call_tool\("everything", "get-sum", \{\s+"a": 2/], ['TypeScript', /callTool\("everything", "get-sum"/], ['Command line', /junctor tools call everything:get-sum --args '\{"a":2,"b":40\}'/]]) {
    await page.getByRole('tab', { name: tab }).click();
    assert.match(await page.locator('.code').last().innerText(), text);
  }
  await page.getByRole('button', { name: 'JSON', exact: true }).click();
  await page.getByLabel('Arguments as JSON').fill('{"a": 1, "b": "two"}');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByRole('alert').getByText(/b/).first().waitFor();
}));

test('tools: filters', on('/#/tools', async (page) => {
  await page.locator('.tool-row').first().waitFor();
  await page.getByLabel('State').selectOption('disabled');
  await page.locator('.tool-row').filter({ hasText: 'delete_entities' }).waitFor();
  assert.equal(await page.locator('.tool-row').filter({ hasText: 'get-sum' }).count(), 0);
  await page.getByLabel('State').selectOption('');
  await page.getByLabel('Tag').selectOption('demo');
  await page.locator('.tool-row').filter({ hasText: 'echo' }).waitFor();
  await page.getByLabel('Server').selectOption('memory');
  await page.getByText('No matching tools').waitFor();
  await page.getByRole('link', { name: 'Clear search and filters' }).click();
  await page.locator('.tool-row').filter({ hasText: 'get-sum' }).waitFor();
}));

test('tools: pictures, resources and progress are shown as what they are', on('/#/tools/everything/get-tiny-image', async (page) => {
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  const picture = page.locator('.answer img');
  await picture.waitFor();
  assert.ok(await picture.evaluate((i) => i.naturalWidth > 0));
  await page.goto(`${g.url}/#/tools/everything/get-resource-reference`);
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.locator('.answer .resource').first().waitFor();
  await page.goto(`${g.url}/#/tools/everything/get-structured-content?args=${encodeURIComponent('{"location":"New York"}')}`);
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.locator('.answer .tree-key', { hasText: 'temperature' }).first().waitFor();
  await page.goto(`${g.url}/#/tools/hostile/slow`);
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByText(/of 5/).first().waitFor();
  await page.getByText('counted').waitFor();
}));

test('tools: a call is stopped', on('/#/tools/hostile/slow', async (page) => {
  await page.getByLabel(/^ms/).fill('20000');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByText(/Stopped/).waitFor();
}));

test('tools: as each provider sees them', on('/#/tools/memory/create_entities', async (page) => {
  await page.getByRole('tab', { name: 'As providers see it' }).click();
  for (const [id, text] of [['openai', /"name": "memory__create_entities"/], ['anthropic', /"input_schema"/], ['gemini', /"function_declarations"/], ['bedrock', /"toolSpec"/]]) {
    await page.getByLabel('Provider').selectOption(id);
    const code = page.locator('.code pre').first();
    await page.waitForFunction(([s]) => new RegExp(s).test(document.querySelector('.code pre')?.textContent ?? ''), [text.source]);
    assert.equal((await code.innerText()).match(/"name"/g)?.length > 0, true);
    assert.doesNotMatch(await code.innerText(), /read_graph/); // of this tool alone
  }
  await page.getByRole('tab', { name: 'Definition' }).click();
  await page.getByText('Definition as the server gave it').waitFor();
}));

test('tools: what wants approval says so, and runs when it is given', on(`/#/tools/files/write_file?args=${encodeURIComponent(JSON.stringify({ path: join(folder, 'page.txt'), content: 'from the page' }))}`, async (page) => {
  await page.getByText('asks first').waitFor();
  await page.getByRole('button', { name: 'Allow and run' }).click();
  await page.locator('.answer').waitFor();
  assert.equal(readFileSync(join(folder, 'page.txt'), 'utf8'), 'from the page');
}));

test('servers: state and reason, restart, off and on', on('/#/servers', async (page) => {
  await page.getByRole('link', { name: /broken/ }).click();
  await page.getByText('correct the path in command').first().waitFor();
  await page.getByRole('link', { name: /everything/ }).first().click();
  await page.getByText('handshake').waitFor();
  await page.getByText('What it last wrote to stderr').waitFor();
  await page.getByRole('button', { name: 'Restart' }).click();
  await page.getByText('everything restarts').waitFor();
  const power = page.getByRole('switch', { name: 'everything is on' });
  await power.click();
  await page.locator('.detail').getByText('off', { exact: true }).waitFor();
  assert.equal(JSON.parse(readFileSync(g.file, 'utf8')).mcpServers.everything.enabled, false);
  await power.click();
  await page.locator('.detail').getByText('connected', { exact: true }).waitFor();
}));

test('servers: added by form and by paste, used, and removed; the file keeps its comments', async () => {
  writeFileSync(g.file, readFileSync(g.file, 'utf8').replace('{', '{\n  // a comment of mine'));
  await on('/#/servers', async (page) => {
    await page.getByRole('button', { name: 'Add' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('added');
    await dialog.getByLabel('Command').fill(servers.memory.command);
    await dialog.getByLabel('Arguments').fill(`"${servers.memory.args[0]}"`);
    await dialog.getByLabel('Environment').fill(`MEMORY_FILE_PATH=${join(home, 'graph.json')}`);
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByText('added is added').waitFor();
    await page.locator('.detail').getByText('connected', { exact: true }).waitFor();
    await page.getByRole('link', { name: '9 tools', exact: true }).click();
    await page.locator('.tool-row').filter({ hasText: 'read_graph' }).click();
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.locator('.answer').getByText('done').waitFor();

    await page.goto(`${g.url}/#/servers?add=paste`);
    await dialog.getByLabel('Configuration').fill('not json');
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await dialog.getByText('That is not JSON').waitFor();
    await dialog.getByLabel('Configuration').fill(`{ // VS Code\n "servers": { "pasted": ${JSON.stringify(servers.memory)}, } }`);
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await page.locator('.detail').getByText('connected', { exact: true }).waitFor();
    assert.match(readFileSync(g.file, 'utf8'), /\/\/ a comment of mine[\s\S]*"pasted"/);

    for (const name of ['pasted', 'added']) {
      await page.getByRole('link', { name: new RegExp(name) }).first().click();
      await page.getByRole('button', { name: 'Remove' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
      await page.locator('.server-row').filter({ hasText: name }).waitFor({ state: 'detached' });
    }
    assert.doesNotMatch(readFileSync(g.file, 'utf8'), /pasted|"added"/);
    assert.match(readFileSync(g.file, 'utf8'), /a comment of mine/);
  })();
});

test('servers: imported from another client, its secret out of the file', async () => {
  mkdirSync(join(home, '.cursor'), { recursive: true });
  writeFileSync(join(home, '.cursor', 'mcp.json'), JSON.stringify({ mcpServers: { 'my graph': { ...servers.memory, env: { SERVICE_TOKEN: 'ghp_0123456789abcdefghij0123456789abcdef' } } } }));
  await on('/#/servers?add=import', async (page) => {
    await page.getByText('cursor').waitFor();
    await page.getByText('secret in plain text').waitFor();
    await shot(page, 'light-import');
    assert.deepEqual(await violations(page), []);
    await page.getByRole('button', { name: 'Import 1' }).click();
    await page.locator('.detail').getByText('connected', { exact: true }).waitFor();
    assert.doesNotMatch(readFileSync(g.file, 'utf8'), /ghp_/);
    await page.getByRole('button', { name: 'Remove' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await page.locator('.server-row').filter({ hasText: 'graph' }).waitFor({ state: 'detached' });
  })();
});

test('servers: sign-in in a new tab, and back', async () => {
  const locked = await guarded();
  const own = await gateway({ script: null, config: { mcpServers: { locked: { url: locked.resource } } } });
  const { page, context } = await open(chrome, own.url, { path: '/#/servers/locked' });
  try {
    await page.getByText('sign-in needed').first().waitFor();
    const opening = context.waitForEvent('page');
    await page.getByRole('button', { name: 'Sign in' }).click();
    const tab = await opening;
    for (let step = 0; step < 10 && !/\/oauth\/callback/.test(tab.url()); step++) {
      const button = tab.locator('button[type=submit]');
      await Promise.race([button.waitFor(), tab.waitForURL(/\/oauth\/callback/)]);
      if (/\/oauth\/callback/.test(tab.url())) break;
      if (await tab.locator('input[name=login]').count()) {
        await tab.fill('input[name=login]', 'ada');
        await tab.fill('input[name=password]', 'any');
      }
      await Promise.all([tab.waitForNavigation(), button.click()]);
    }
    await tab.close();
    await page.locator('.detail').getByText('connected', { exact: true }).waitFor();
    await page.goto(`${own.url}/#/tools/locked/whoami`);
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByText('account ada').waitFor();
  } finally {
    await context.close();
    await own.stop();
    await locked.stop();
  }
});

test('activity: calls appear as they happen, are filtered, paused, looked at and exported', on('/#/activity', async (page, context) => {
  await page.getByText('live', { exact: true }).waitFor();
  const rows = page.locator('.call-row');
  const call = (message) => context.request.post(`${g.url}/call_tool`, { data: { server: 'everything', tool: 'echo', arguments: { message } }, headers: { 'X-Request-Id': `echo-${message}` } });
  await context.request.post(`${g.url}/call_tool`, { data: { server: 'everything', tool: 'get-sum', arguments: { a: 1, b: 2 } } });
  await rows.first().waitFor();
  await page.getByRole('searchbox').fill('echo-');
  await call('one');
  await rows.filter({ hasText: 'echo' }).first().waitFor();
  assert.equal(await rows.count(), 1);
  await page.getByRole('button', { name: 'Pause' }).click();
  await call('two');
  await page.getByText(/paused, 1 new/).waitFor();
  assert.equal(await rows.count(), 1);
  await page.getByRole('button', { name: 'Go on' }).click();
  await page.waitForFunction(() => document.querySelectorAll('.call-row').length === 2);
  await rows.first().click();
  await page.getByText('Timeline').waitFor();
  await page.locator('.timeline').getByText('dispatch').waitFor();
  await page.locator('.detail').getByText('"two"').waitFor();
  const saving = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Export' }).click();
  const lines = readFileSync(await (await saving).path(), 'utf8').trim().split('\n').map((l) => JSON.parse(l));
  assert.deepEqual(lines.map((l) => l.id), ['echo-two', 'echo-one']);
}));

test('activity: the MCP trace is live, is filtered and paused, and comes back', async () => {
  const own = await gateway({ script: null, config: { mcpServers: { everything: servers.everything } } });
  const asked = [];
  const { page, context, wrong } = await open(chrome, own.url, { path: '/#/activity?tab=trace', prepare: (page) => page.on('request', (r) => asked.push(new URL(r.url()).pathname)) });
  try {
    const call = (message) => context.request.post(`${own.url}/call_tool`, { data: { server: 'everything', tool: 'echo', arguments: { message } } });
    const rows = page.locator('.trace summary');
    await page.getByText('live', { exact: true }).waitFor();
    await call('first');
    await rows.filter({ hasText: 'Echo: first' }).click();
    await page.locator('.trace .tree').first().waitFor();
    await page.getByLabel('Filter messages').fill('second');
    await page.getByText('No matches').waitFor();
    await call('second');
    await rows.first().waitFor();
    assert.equal(await rows.count(), 2); // there and back
    await page.getByRole('button', { name: 'Pause' }).click();
    await call('second again');
    await page.getByText('paused, 2 new').waitFor();
    assert.equal(await rows.count(), 2);
    await page.getByRole('button', { name: 'Go on' }).click();
    await page.waitForFunction(() => document.querySelectorAll('.trace summary').length === 4);
    assert.deepEqual(await violations(page), []);
    await own.restart(async () => page.getByText('reconnecting', { exact: true }).waitFor());
    await page.getByText('live', { exact: true }).waitFor();
    await call('second after all');
    await rows.filter({ hasText: 'after all' }).first().waitFor();
    assert.equal(asked.filter((path) => path === '/api/mcptrace').length <= 2, true); // looked for, not polled
    assert.deepEqual(wrong, []);
  } finally {
    await context.close();
    await own.stop();
  }
});

test('settings: theme, keys, configuration', on('/#/settings', async (page) => {
  await page.getByRole('button', { name: 'Dark', exact: true }).click();
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).colorScheme), 'dark');
  await page.reload();
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).colorScheme), 'dark');
  await page.getByRole('button', { name: 'As the system' }).click();
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).colorScheme), 'light');

  await page.getByRole('tab', { name: 'API keys' }).click();
  await page.getByRole('button', { name: 'New key' }).click();
  await page.getByLabel('Name').fill('laptop');
  await page.getByLabel('Servers').fill('memory');
  await page.getByRole('button', { name: 'Make' }).click();
  const key = await page.locator('.keyline code').innerText();
  assert.match(key, /^jct_/);
  const seen = await page.request.get(`${g.url}/api/tools`, { headers: { Authorization: `Bearer ${key}` } });
  assert.deepEqual([...new Set((await seen.json()).tools.map((t) => t.server))], ['memory']);
  await page.getByRole('row', { name: /laptop/ }).getByRole('button', { name: 'Revoke' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await page.getByText('No keys').waitFor();
  const status = async () => (await page.request.get(`${g.url}/api/tools`, { headers: { Authorization: `Bearer ${key}` } })).status();
  for (const end = Date.now() + patience; (await status()) !== 401; ) {
    assert.ok(Date.now() < end, 'the key still opens');
    await new Promise((r) => setTimeout(r, 100));
  }

  await page.getByRole('tab', { name: 'Configuration' }).click();
  await page.getByLabel('Search settings').fill('apiKey');
  await page.getByText('llm').first().waitFor();
  assert.doesNotMatch(await page.locator('.page').innerText(), /^k$/m); // the models' key is masked
  await page.getByLabel('Search settings').fill('mcpServers.everything.command');
  await page.getByText(/junctor\.json:\d+/).first().waitFor();
}));

test('sign-in: with a key, and out again', async () => {
  const own = await gateway({ script: null, config: { auth: { loopback: 'key' } }, env: { JUNCTOR_ADMIN_KEY: 'the-first-administrator' } });
  const { page, context, wrong } = await open(chrome, own.url);
  try {
    await page.getByLabel('API key').fill('wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').waitFor();
    assert.deepEqual(await violations(page), []);
    await page.getByLabel('API key').fill('the-first-administrator');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('Welcome to Junctor').waitFor();
    await page.goto(`${own.url}/#/settings`);
    await page.getByText('administrator', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('API key').waitFor();
    assert.deepEqual(wrong, []);
  } finally {
    await context.close();
    await own.stop();
  }
});

test('nothing configured: the first screen leads on', async () => {
  const own = await gateway({ script: null });
  const { page, context, wrong } = await open(chrome, own.url);
  try {
    await page.getByText('Welcome to Junctor').waitFor();
    await page.getByRole('heading', { name: 'No model is set up' }).waitFor();
    assert.deepEqual(await violations(page), []);
    await shot(page, 'first');
    await say(page, 'hello?');
    await page.locator('.turn.assistant').getByText('GEMINI_API_KEY').waitFor();
    await settled(page);
    await page.getByRole('button', { name: 'New chat' }).click();
    await page.getByRole('link', { name: 'Calculate something' }).click();
    await page.getByLabel(/expression/).fill('2^64');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByText('18446744073709551616').first().waitFor();
    await page.goto(`${own.url}/#/activity`);
    await page.locator('.call-row').filter({ hasText: 'calculate' }).waitFor();
    assert.deepEqual(wrong, []);
  } finally {
    await context.close();
    await own.stop();
  }
});

test('hostile content stays text', on('/#/chat', async (page) => {
  const owned = () => page.evaluate(() => window.owned);
  await say(page, 'something hostile');
  await page.getByText('<iframe src="https://evil.example"></iframe> done').waitFor();
  await page.getByRole('region', { name: /hostile:markup/ }).getByRole('button').first().click();
  await page.getByText('<script>window.owned=1</script>').first().waitFor();
  assert.equal(await page.locator('.turn img:not([src^="data:"]), .turn iframe, .turn script, .turn svg[onload]').count(), 0);
  assert.equal(await page.locator('.turn a[href^="javascript"]').count(), 0);
  await page.goto(`${g.url}/#/tools/hostile/markup`);
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.locator('.answer').waitFor();
  await page.getByRole('tab', { name: 'Definition' }).click();
  await page.goto(`${g.url}/#/tools?q=${encodeURIComponent('<img src=x onerror=window.owned=1>')}`);
  await page.goto(`${g.url}/#/servers/${encodeURIComponent('<img src=x onerror=window.owned=1>')}`);
  await page.getByText('There is no server').waitFor();
  await page.goto(`${g.url}/#/activity/${encodeURIComponent('<script>window.owned=1</script>')}`);
  await page.getByRole('alert').waitFor();
  assert.equal(await owned(), undefined);
}));

test('a result of 5 MB does not freeze the page', on('/#/tools/hostile/huge', async (page) => {
  // The longest that the page was deaf to the keyboard is what freezing means.
  await page.evaluate(() => {
    window.deaf = 0;
    let last = performance.now();
    setInterval(() => {
      const now = performance.now();
      window.deaf = Math.max(window.deaf, now - last);
      last = now;
    }, 20);
  });
  for (const path of ['huge', 'hugejson']) {
    await page.goto(`${g.url}/#/tools/hostile/${path}`);
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.locator('.answer').waitFor();
    await page.locator('.answer .longtext, .answer .tree').first().waitFor();
    // Little of it is in the document, and the rest is there when asked for.
    assert.ok((await page.locator('.answer').innerHTML()).length < 1_000_000);
  }
  await page.locator('.answer').getByRole('button', { name: /more/ }).first().click();
  const deaf = await page.evaluate(() => window.deaf);
  console.log(`the page was deaf for ${Math.round(deaf)} ms at most`);
}));

test('5,000 tools scroll, and are searched', async () => {
  const own = await gateway({ script: null, config: { mcpServers: { many: servers.many(5000) } } });
  const { page, context, wrong } = await open(chrome, own.url, { path: '/#/tools' });
  try {
    await page.getByText('5,000', { exact: true }).waitFor();
    assert.ok((await page.locator('.tool-row').count()) < 60);
    const list = page.locator('.vlist');
    for (let i = 1; i <= 20; i++) {
      await list.evaluate((e, part) => (e.scrollTop = e.scrollHeight * part), i / 20);
      await page.waitForFunction(() => {
        const box = document.querySelector('.vlist').getBoundingClientRect();
        const row = document.elementFromPoint(box.left + 40, box.top + box.height / 2)?.closest('.tool-row');
        return row !== null && row !== undefined;
      });
    }
    await page.locator('.tool-row').filter({ hasText: '_4999' }).waitFor();
    await page.locator('.tool-row').last().focus();
    await page.keyboard.press('Home');
    await page.waitForFunction(() => document.activeElement?.closest('[data-index]')?.getAttribute('data-index') === '0');
    await page.getByRole('searchbox').fill('archive a calendar event');
    await page.locator('.tool-row').filter({ hasText: 'archive_calendar_event' }).first().waitFor();
    assert.deepEqual(await violations(page), []);
    assert.deepEqual(wrong, []);
  } finally {
    await context.close();
    await own.stop();
  }
});

test('keyboard alone: find a tool and run it', on('/#/chat', async (page) => {
  await page.getByRole('textbox', { name: 'Message' }).waitFor();
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: /Find/ }).waitFor();
  await page.keyboard.type('echo');
  await page.getByRole('option', { name: /echo/ }).first().waitFor();
  await page.waitForFunction(() => document.querySelector('[role=option][aria-selected=true]')?.textContent?.includes('echo'));
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'echo', exact: true }).waitFor();
  await page.getByLabel(/^message/).focus();
  await page.keyboard.type('by hand');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.locator('.answer').getByText('by hand').waitFor();
}));

const views = [
  ['chat', '/#/chat', (p) => p.getByRole('heading', { name: 'What shall we do?' })],
  ['tools', '/#/tools', (p) => p.locator('.tool-row').first()],
  ['tool', `/#/tools/everything/get-sum?args=${encodeURIComponent('{"a":2,"b":3}')}`, (p) => p.getByRole('button', { name: 'Run', exact: true })],
  ['servers', '/#/servers', (p) => p.locator('.server-row').first()],
  ['server', '/#/servers/everything', (p) => p.getByText('handshake')],
  ['add', '/#/servers?add=form', (p) => p.getByRole('dialog')],
  ['activity', '/#/activity', (p) => p.locator('.call-row').first()],
  ['settings', '/#/settings', (p) => p.getByText('Connect an agent')],
  ['keys', '/#/settings/keys', (p) => p.getByRole('button', { name: 'New key' })],
  ['config', '/#/settings/config', (p) => p.locator('table.config').first()],
];

for (const theme of ['light', 'dark']) {
  for (const width of [1280, 380]) {
    test(`every view, ${theme}, ${width} px: no serious violation, nothing sticks out`, on('/', async (page) => {
      for (const [name, path, ready] of views) {
        await page.goto(g.url + path);
        await ready(page).waitFor();
        await shot(page, `${theme}-${width}-${name}`);
        assert.deepEqual(await violations(page), [], name);
        assert.ok((await sideways(page)) <= 0, `${name} scrolls sideways`);
      }
    }, { colorScheme: theme, viewport: { width, height: width < 500 ? 760 : 820 } }));
  }
}

test('380 px: a whole chat on a phone', on('/#/chat', async (page) => {
  await page.getByRole('button', { name: 'Conversations' }).click();
  await page.getByRole('button', { name: 'New chat' }).click();
  await say(page, 'What is the sum of 19 and 23?');
  await page.getByText('The sum is').waitFor();
  await page.getByRole('region', { name: /get-sum/ }).getByRole('button').first().click();
  assert.ok((await sideways(page)) <= 0);
  await page.getByRole('link', { name: 'Tools' }).click();
  await page.locator('.tool-row').first().click();
  await page.getByRole('link', { name: 'Back to the list' }).click();
  await page.locator('.tool-row').first().waitFor();
}, { viewport: { width: 380, height: 760 } }));

