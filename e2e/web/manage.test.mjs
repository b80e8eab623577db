// Servers, activity, settings and the first screens in a real browser, against
// the real binary.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { shared } from './page.mjs';
import { startGuardedServer, replyFinished, screenshot, sendMessage, servers, violations, waitForCount, waitUntil } from './fixture.mjs';

const fixture = shared();
const { withPage, withOwnGateway, home } = fixture;

/** toast runs f and waits for a toast with the text, which disappears soon. */
const toast = (page, text, f) => Promise.all([page.getByText(text).waitFor(), f()]);

/** waitForTheme waits until the page has the color scheme. */
const waitForTheme = (page, want) => page.waitForFunction((want) => getComputedStyle(document.body).colorScheme === want, want);

test('servers: show state and reason, restart, disable and enable', withPage('/#/servers', async (page) => {
  await page.getByRole('link', { name: /broken/ }).click();
  await page.getByText('correct the path in command').first().waitFor();
  await page.getByRole('link', { name: /everything/ }).first().click();
  await page.getByText('handshake').waitFor();
  await page.getByText('Latest output on stderr').waitFor();
  await toast(page, 'everything is restarting', () => page.getByRole('button', { name: 'Restart' }).click());
  const enabledSwitch = page.getByRole('switch', { name: 'everything is on' });
  await enabledSwitch.click();
  await page.locator('.detail').getByText('off', { exact: true }).waitFor();
  assert.equal(JSON.parse(readFileSync(fixture.g.file, 'utf8')).mcpServers.everything.enabled, false);
  await enabledSwitch.click();
  await page.locator('.detail').getByText('connected', { exact: true }).waitFor();
}));

test('servers: add by form and by paste, use and remove; comments in the file are kept', async (t) => {
  const { g } = fixture;
  writeFileSync(g.file, readFileSync(g.file, 'utf8').replace('{', '{\n  // a comment of mine'));
  await withPage('/#/servers', async (page) => {
    await page.getByRole('button', { name: 'Add' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('added');
    await dialog.getByLabel('Command').fill(servers.memory.command);
    await dialog.getByLabel('Arguments').fill(`"${servers.memory.args[0]}"`);
    await dialog.getByLabel('Environment').fill(`MEMORY_FILE_PATH=${join(home, 'graph.json')}\nADDED_TOKEN=ghp_0123456789abcdefghij0123456789abcdef`);
    await toast(page, 'added added', () => dialog.getByRole('button', { name: 'Add', exact: true }).click());
    await page.locator('.detail').getByText('connected', { exact: true }).waitFor();
    assert.match(readFileSync(g.file, 'utf8'), /"ADDED_TOKEN": "\$\{ADDED_TOKEN\}"/);
    assert.match(readFileSync(join(home, '.config', 'junctor', '.env'), 'utf8'), /ADDED_TOKEN="ghp_/);
    await page.getByRole('link', { name: '9 tools', exact: true }).click();
    await page.locator('.tool-row').filter({ hasText: 'read_graph' }).click();
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.locator('.answer').getByText('done').waitFor();

    await page.goto(`${g.url}/#/servers?add=paste`);
    await dialog.getByLabel('Configuration').fill('not json');
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await dialog.getByText('Invalid JSON').waitFor();
    await dialog.getByLabel('Configuration').fill(`{ // VS Code\n "servers": { "pasted": ${JSON.stringify(servers.memory)}, } }`);
    await toast(page, 'pasted added', () => dialog.getByRole('button', { name: 'Add', exact: true }).click());
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
  })(t);
});

test('servers: see what runs, switch tools, test and edit; typed secrets go into .env', withPage('/#/servers/memory', async (page) => {
  const { g } = fixture;
  const file = () => JSON.parse(readFileSync(g.file, 'utf8').replace(/^\s*\/\/.*$/gm, ''));
  await page.locator('.runs').getByText('server-memory').waitFor();
  await toast(page, /memory answered in/, () => page.getByRole('button', { name: 'Test', exact: true }).click());
  const enabledSwitch = page.getByRole('switch', { name: 'open_nodes is on' });
  await enabledSwitch.click();
  await page.locator('[role=switch][aria-label="open_nodes is on"][aria-checked=false]').waitFor();
  assert.deepEqual(file().toolRules.at(-1), { pattern: 'memory:open_nodes', enabled: false });
  assert.equal((await page.request.post(`${g.url}/call_tool`, { data: { server: 'memory', tool: 'open_nodes', arguments: { names: [] } } })).ok(), false);
  await enabledSwitch.click();
  await page.locator('[role=switch][aria-label="open_nodes is on"][aria-checked=true]').waitFor();
  await page.getByRole('switch', { name: 'Ask before open_nodes' }).click();
  await page.locator('[role=switch][aria-label="Ask before open_nodes"][aria-checked=true]').waitFor();
  assert.deepEqual(file().toolRules.at(-1), { pattern: 'memory:open_nodes', approval: 'ask', enabled: true });
  await page.getByRole('switch', { name: 'Ask before open_nodes' }).click();
  await page.locator('[role=switch][aria-label="Ask before open_nodes"][aria-checked=false]').waitFor();

  await page.goto(`${g.url}/#/servers?add=paste`);
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Configuration').fill(`claude mcp add --env GRAPH_TOKEN=ghp_0123456789abcdefghij0123456789abcdef typed -- ${servers.memory.command} ${servers.memory.args[0]}`);
  await toast(page, 'typed added', () => dialog.getByRole('button', { name: 'Add', exact: true }).click());
  await page.locator('.detail').getByText('connected', { exact: true }).waitFor();
  await page.getByText('GRAPH_TOKEN').waitFor();
  assert.equal(file().mcpServers.typed.env.GRAPH_TOKEN, '${GRAPH_TOKEN}');
  assert.match(readFileSync(join(home, '.config', 'junctor', '.env'), 'utf8'), /GRAPH_TOKEN="ghp_/);
  await page.getByRole('button', { name: 'Edit', exact: true }).click();
  await dialog.getByLabel('Environment').fill(`GRAPH_TOKEN=\${GRAPH_TOKEN}\nMEMORY_FILE_PATH=${join(home, 'edited.json')}`);
  await dialog.getByText('More settings').click();
  await dialog.getByLabel('Settings as JSON').fill('{"description":"Edited here"}');
  assert.deepEqual(await violations(page), []);
  await toast(page, 'typed saved', () => dialog.getByRole('button', { name: 'Save' }).click());
  await page.getByText('MEMORY_FILE_PATH').waitFor();
  assert.equal(file().mcpServers.typed.description, 'Edited here');
  await page.getByRole('button', { name: 'Remove' }).click();
  await dialog.getByRole('button', { name: 'Remove' }).click();
  await page.locator('.server-row').filter({ hasText: 'typed' }).waitFor({ state: 'detached' });

  await page.goto(`${g.url}/#/servers/everything`);
  await page.getByRole('heading', { name: /^Resources/ }).waitFor();
  await page.getByRole('heading', { name: /^Prompts/ }).waitFor();
  await screenshot(page, 'light-server-whole');
  assert.deepEqual(await violations(page), []);
}));

test('servers: import from another client moves secrets out of the file', async (t) => {
  mkdirSync(join(home, '.cursor'), { recursive: true });
  writeFileSync(join(home, '.cursor', 'mcp.json'), JSON.stringify({ mcpServers: { 'my graph': { ...servers.memory, env: { SERVICE_TOKEN: 'ghp_0123456789abcdefghij0123456789abcdef' } } } }));
  await withPage('/#/servers?add=import', async (page) => {
    await page.getByText('cursor').waitFor();
    await page.getByText('secret in plain text').waitFor();
    await screenshot(page, 'light-import');
    assert.deepEqual(await violations(page), []);
    await page.getByRole('button', { name: 'Import 1' }).click();
    await page.locator('.detail').getByText('connected', { exact: true }).waitFor();
    assert.doesNotMatch(readFileSync(fixture.g.file, 'utf8'), /ghp_/);
    await page.getByRole('button', { name: 'Remove' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await page.locator('.server-row').filter({ hasText: 'graph' }).waitFor({ state: 'detached' });
  })(t);
});

test('servers: sign in in a new tab', async (t) => {
  const locked = await startGuardedServer();
  try {
    await withOwnGateway({ script: null, config: { mcpServers: { locked: { url: locked.resource } } } }, '/#/servers/locked', async (page, own, context) => {
      await page.getByText('sign-in required').first().waitFor();
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
    })(t);
  } finally {
    await locked.stop();
  }
});

test('activity: calls appear live and can be filtered, paused, opened and exported', withPage('/#/activity', async (page, context) => {
  const { g } = fixture;
  await page.getByText('live', { exact: true }).waitFor();
  const rows = page.locator('.call-row');
  const call = (message) => context.request.post(`${g.url}/call_tool`, { data: { server: 'everything', tool: 'echo', arguments: { message } }, headers: { 'X-Request-Id': `echo-${message}` } });
  await context.request.post(`${g.url}/call_tool`, { data: { server: 'everything', tool: 'get-sum', arguments: { a: 1, b: 2 } } });
  await rows.first().waitFor();
  await page.getByRole('searchbox').fill('echo-');
  await call('one');
  await rows.filter({ hasText: 'echo' }).first().waitFor();
  await waitForCount(rows, 1);
  await page.getByRole('button', { name: 'Pause' }).click();
  await call('two');
  await page.getByText(/paused, 1 new/).waitFor();
  await waitForCount(rows, 1);
  await page.getByRole('button', { name: 'Resume' }).click();
  await waitForCount(rows, 2);
  await rows.first().click();
  await page.getByText('Timeline').waitFor();
  await page.locator('.timeline').getByText('dispatch').waitFor();
  await page.locator('.detail').getByText('"two"').waitFor();
  const saving = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Export' }).click();
  const lines = readFileSync(await (await saving).path(), 'utf8').trim().split('\n').map((l) => JSON.parse(l));
  assert.deepEqual(lines.map((l) => [l.requestId, l.arguments.message]), [['echo-one', 'one'], ['echo-two', 'two']]); // in full
}));

test('activity: figures, charts and search cover all calls of the range, not only those that are loaded', withPage('/#/activity?range=24h', async (page, context) => {
  const { g } = fixture;
  const call = (tool, args) => context.request.post(`${g.url}/call_tool`, { data: { server: 'memory', tool, arguments: args } });
  await call('open_nodes', { names: ['a needle in the arguments'] });
  for (let i = 0; i < 5; i++) await call('search_nodes', { query: `hay ${i}` });
  await call('search_nodes', { query: 7 }); // refused
  const table = page.locator('.figures-table');
  const cells = (name) => table.getByRole('row', { name }).locator('td').allInnerTexts();
  await page.getByRole('tab', { name: 'By tool' }).click();
  await waitUntil(async () => (await cells(/search_nodes/))[0] === '6', 'six calls of search_nodes');
  assert.equal((await cells(/search_nodes/))[1], '1');
  await page.getByRole('button', { name: 'search_nodes' }).click();
  await waitForCount(page.locator('.call-row'), 6);
  await page.locator('figcaption').getByText('6 calls').waitFor();
  await page.getByRole('button', { name: 'search_nodes' }).and(page.locator('.filters button')).click();

  await page.getByRole('searchbox').fill('NEEDLE in the arg');
  await waitForCount(page.locator('.call-row'), 1);
  await page.locator('figcaption').getByText('1 call', { exact: true }).waitFor();
  await page.getByRole('searchbox').fill('');
  await page.getByLabel('Caller').selectOption({ index: 1 });
  await page.locator('.call-row').first().waitFor();

  // The calls are at the right end: drag over it, and only they are left.
  const chart = page.getByRole('group', { name: /^Calls over time/ });
  const { x, y, width, height } = await chart.boundingBox();
  await page.mouse.move(x + width - 12, y + height / 2);
  await page.locator('.chart-tip:not([hidden])').getByText('ok', { exact: false }).waitFor();
  await page.mouse.down();
  await page.mouse.move(x + width - 60, y + height / 2, { steps: 4 });
  await page.mouse.up();
  await page.getByText('past', { exact: true }).waitFor();
  assert.match(page.url(), /from=\d+&to=\d+/);
  await page.locator('.call-row').filter({ hasText: 'search_nodes' }).first().waitFor();
  assert.deepEqual(await violations(page), []);
  await page.getByRole('button', { name: 'Zoom out' }).click();
  await page.getByText('live', { exact: true }).waitFor();
  await chart.focus();
  await chart.press('ArrowLeft');
  await page.locator('.chart-tip:not([hidden])').waitFor();
}));

const requestPaths = [];
test('activity: the MCP trace is live, can be filtered and paused, and reconnects', withOwnGateway({ restarts: true, script: null, config: { mcpServers: { everything: servers.everything } }, tools: ['everything:trigger-elicitation-request'] }, '/#/activity?tab=trace', async (page, own, context) => {
  const call = (message) => context.request.post(`${own.url}/call_tool`, { data: { server: 'everything', tool: 'echo', arguments: { message } } });
  const rows = page.locator('.trace summary');
  await page.getByText('live', { exact: true }).waitFor();
  await call('first');
  await rows.filter({ hasText: 'Echo: first' }).click();
  await page.locator('.trace .tree').first().waitFor();
  await page.getByLabel('Filter messages').fill('second');
  await page.getByText('No matches').waitFor();
  await call('second');
  await waitForCount(rows, 2); // the request and its response
  await page.getByRole('button', { name: 'Pause' }).click();
  await call('second again');
  await page.getByText(/paused, ([2-9]|\d\d+) new/).waitFor(); // the server may send more messages by itself
  await waitForCount(rows, 2);
  await page.getByRole('button', { name: 'Resume' }).click();
  await waitForCount(rows, 4);
  assert.deepEqual(await violations(page), []);
  await own.restart(async () => page.getByText('reconnecting', { exact: true }).waitFor());
  await page.getByText('live', { exact: true }).waitFor();
  await call('second after all');
  await rows.filter({ hasText: 'after all' }).first().waitFor();
  assert.equal(requestPaths.filter((path) => path === '/api/mcptrace').length <= 2, true); // checked once, not polled
}, { prepare: (page) => page.on('request', (r) => requestPaths.push(new URL(r.url()).pathname)) }));

test('settings: change the theme, create and revoke a key, search the configuration', withPage('/#/settings', async (page) => {
  const { g } = fixture;
  await page.getByRole('button', { name: 'Dark', exact: true }).click();
  await waitForTheme(page, 'dark');
  await page.reload();
  await waitForTheme(page, 'dark');
  await page.getByRole('button', { name: 'System', exact: true }).click();
  await waitForTheme(page, 'light');

  await page.getByRole('tab', { name: 'API keys' }).click();
  await page.getByRole('button', { name: 'New key' }).click();
  await page.getByLabel('Name').fill('laptop');
  await page.getByLabel('Servers').fill('memory');
  await page.getByLabel('Chat and other uses of models').selectOption('yes');
  await page.getByRole('button', { name: 'Create key' }).click();
  await page.getByRole('row', { name: /laptop chat/ }).waitFor();
  const key = await page.locator('.keyline code').innerText();
  assert.match(key, /^jct_/);
  const tools = await page.request.get(`${g.url}/api/tools`, { headers: { Authorization: `Bearer ${key}` } });
  assert.deepEqual([...new Set((await tools.json()).tools.map((t) => t.server))], ['memory']);
  await page.getByRole('row', { name: /laptop/ }).getByRole('button', { name: 'Revoke' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await page.getByText('No keys').waitFor();
  const status = async () => (await page.request.get(`${g.url}/api/tools`, { headers: { Authorization: `Bearer ${key}` } })).status();
  await waitUntil(async () => (await status()) === 401, 'the key still opens');

  await page.getByRole('tab', { name: 'Configuration' }).click();
  await page.getByRole('button', { name: 'In effect' }).click();
  await page.getByLabel('Search settings').fill('apiKey');
  await page.getByText('llm').first().waitFor();
  assert.doesNotMatch(await page.locator('.page').innerText(), /^k$/m); // the models' key is masked
  await page.getByLabel('Search settings').fill('mcpServers.everything.command');
  await page.getByText(/junctor\.json:\d+/).first().waitFor();
}));

test('settings: change the configuration in a form, with the file beside it; a restart is marked', withPage('/#/settings/config', async (page) => {
  const { g } = fixture;
  const file = () => readFileSync(g.file, 'utf8');
  await page.getByLabel('Search settings').fill('log.');
  await page.getByLabel('log.level').selectOption('warn');
  await page.getByLabel('log.format').selectOption('json');
  await page.getByText('needs a restart').first().waitFor();
  await page.getByRole('region', { name: 'Unsaved changes' }).getByText('2 unsaved changes').waitFor();
  await screenshot(page, 'settings-form');
  assert.deepEqual(await violations(page), []);
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Restart the gateway to apply').waitFor();
  await page.getByLabel('The configuration file').getByText('"level": "warn"').waitFor();
  assert.match(file(), /"level": "warn"/);
  await page.getByLabel('Search settings').fill('maxBodyBytes');
  await page.getByLabel('limits.maxBodyBytes').fill('5');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText(/must be at least 1024/).waitFor();
  assert.doesNotMatch(file(), /maxBodyBytes/);
  await page.getByRole('button', { name: 'Discard' }).click();
  await page.getByLabel('Search settings').fill('log.');
  await page.getByLabel('log.level').selectOption('');
  await page.getByLabel('log.format').selectOption('');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByLabel('The configuration file').getByText('"warn"').waitFor({ state: 'detached' });
  assert.doesNotMatch(file(), /"level"/);
}));

test('settings: make a profile, see what it has while typing, use it in a key and a chat, remove it', withPage('/#/settings/profiles', async (page) => {
  const file = () => JSON.parse(readFileSync(fixture.g.file, 'utf8').replace(/^\s*\/\/.*$/gm, ''));
  const dialog = page.getByRole('dialog');
  await page.getByRole('button', { name: 'New profile' }).click();
  await dialog.getByLabel('Name').fill('graph');
  await dialog.getByLabel('Servers').fill('memory');
  await dialog.getByText(/^[2-9] tools of 1 server can be used/).waitFor();
  await dialog.getByLabel('Tools').fill('*:read_*, !*:delete_*');
  await dialog.getByText('1 tool of 1 server can be used').click();
  await dialog.getByText('read_graph').waitFor();
  await dialog.getByLabel('Instructions').fill('Only the graph.');
  assert.deepEqual(await violations(page), []);
  await screenshot(page, 'light-profile-edit');
  await toast(page, 'graph saved', () => dialog.getByRole('button', { name: 'Save' }).click());
  assert.deepEqual(file().profiles.graph, { servers: ['memory'], tools: ['*:read_*', '!*:delete_*'], instructions: 'Only the graph.' });
  const card = page.getByRole('region', { name: 'graph' });
  await card.getByText('1 tool of 1 server can be used').waitFor();

  await page.getByRole('tab', { name: 'API keys' }).click();
  await page.getByRole('button', { name: 'New key' }).click();
  await dialog.getByLabel('Name').fill('graph-bot');
  await dialog.getByLabel('Profile').selectOption('graph');
  await dialog.getByRole('button', { name: 'Create key' }).click();
  await page.getByRole('cell', { name: 'profile graph' }).waitFor();
  await page.goto(`${fixture.g.url}/#/chat`);
  // It is shown once the chat is connected: without a connection nothing is saved.
  await page.getByRole('heading', { name: 'What can I help with?' }).waitFor();
  await page.getByRole('button', { name: 'Settings of this chat' }).click();
  await dialog.getByLabel('Profile').selectOption('graph');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.waitFor({ state: 'detached' });

  await page.goto(`${fixture.g.url}/#/settings/profiles`);
  await card.getByText('Keys bound to it: graph-bot').waitFor();
  assert.deepEqual(await violations(page), []);
  await screenshot(page, 'light-profiles');
  await page.getByRole('button', { name: 'Edit graph' }).click();
  await dialog.getByLabel('Tools').fill('');
  await dialog.getByText(/^[2-9] tools of 1 server can be used/).waitFor();
  await toast(page, 'graph saved', () => dialog.getByRole('button', { name: 'Save' }).click());
  await page.getByRole('button', { name: 'Remove graph' }).click();
  await dialog.getByText('graph-bot').waitFor();
  await toast(page, 'graph removed', () => dialog.getByRole('button', { name: 'Remove', exact: true }).click());
  await page.getByText('No profiles').waitFor();
  assert.equal(file().profiles?.graph, undefined);
}));

test('settings: a model and its key are added in the page; the key goes into .env', withOwnGateway({ script: null, config: {} }, '/#/settings/models', async (page, own) => {
  await page.getByText('No model configured').waitFor();
  await page.getByRole('button', { name: 'Add model' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('provider').selectOption('anthropic');
  await dialog.getByLabel('model', { exact: true }).fill('claude-test');
  await dialog.getByLabel('apiKey').fill('sk-ant-0123456789abcdefghijklmnop');
  assert.deepEqual(await violations(page), []);
  await dialog.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('row', { name: /anthropic\/claude-test/ }).getByText('ANTHROPIC_API_KEY').waitFor();
  await screenshot(page, 'settings-models');
  assert.doesNotMatch(readFileSync(own.file, 'utf8'), /sk-ant/);
  assert.match(readFileSync(join(own.home, '.config', 'junctor', '.env'), 'utf8'), /ANTHROPIC_API_KEY="sk-ant/);
  const models = await (await page.request.get(`${own.url}/api/models`)).json();
  assert.equal(models.models[0].id, 'anthropic/claude-test');
}));

test('sign-in: sign in with a key and sign out', withOwnGateway({ script: null, config: { auth: { loopback: 'key' } }, env: { JUNCTOR_ADMIN_KEY: 'the-first-administrator' } }, '/', async (page, own) => {
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
}, { token: false }));

test('start screen without configuration: explains models and runs a built-in tool', withOwnGateway({ script: null }, '/', async (page, own) => {
  await page.getByText('Welcome to Junctor').waitFor();
  await page.getByRole('heading', { name: 'No model configured' }).waitFor();
  assert.deepEqual(await violations(page), []);
  await screenshot(page, 'first');
  await sendMessage(page, 'hello?');
  await page.locator('.turn.assistant').getByText('GEMINI_API_KEY').waitFor();
  await replyFinished(page);
  await page.getByRole('button', { name: 'New chat' }).click();
  await page.getByRole('link', { name: 'Calculate something' }).click();
  await page.getByLabel(/expression/).fill('2^64');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByText('18446744073709551616').first().waitFor();
  await page.goto(`${own.url}/#/activity`);
  await page.locator('.call-row').filter({ hasText: 'calculate' }).waitFor();
}));
