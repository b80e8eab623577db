// The tools on the page in a real browser, against the real binary.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { shared } from './page.mjs';
import { screenshot, sendMessage, servers, violations, waitForCount, waitForNoOverflow, waitUntil } from './fixture.mjs';

const fixture = shared();
const { withPage, withOwnGateway, folder } = fixture;

test('tools: search while typing, and run from a form', withPage('/#/tools', async (page) => {
  const box = page.getByRole('searchbox', { name: 'Search tools' });
  await page.locator('.tool-row').first().waitFor();
  await page.keyboard.press('/');
  await box.pressSequentially('add two numbers');
  await page.locator('.tool-row').filter({ hasText: 'get-sum' }).first().waitFor();
  await waitUntil(async () => {
    await box.press('ArrowDown'); // again, because a later response may have redrawn the list
    return page.evaluate(() => document.activeElement?.classList.contains('tool-row'));
  }, 'no tool has the focus');
  await page.locator('.tool-row').filter({ hasText: 'get-sum' }).first().click();
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByText('is required').first().waitFor(); // the form checks before anything is called
  await page.getByLabel(/^a/).fill('2');
  await page.getByLabel(/^b/).fill('40');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByText('The sum of 2 and 40 is 42').waitFor();
  for (const [tab, text] of [['curl', /call_tool/], ['Python', /gateway\.call_tool\("everything", "get-sum", \{\s+"a": 2/], ['TypeScript', /callTool\("everything", "get-sum"/], ['Command line', /junctor tools call everything:get-sum --args '\{"a":2,"b":40\}'/]]) {
    await page.getByRole('tab', { name: tab }).click();
    await page.locator('.code').last().getByText(text).waitFor();
  }
  await page.getByRole('button', { name: 'JSON', exact: true }).click();
  await page.getByLabel('Arguments as JSON').fill('{"a": 1, "b": "two"}');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByRole('alert').getByText(/b/).first().waitFor();
}));

test('tools: filter by server, tag and state', withPage('/#/tools', async (page) => {
  await page.locator('.tool-row').first().waitFor();
  await page.getByLabel('State').selectOption('disabled');
  await page.locator('.tool-row').filter({ hasText: 'delete_entities' }).waitFor();
  await waitForCount(page.locator('.tool-row').filter({ hasText: 'get-sum' }), 0);
  await page.getByLabel('State').selectOption('');
  await page.getByLabel('Tag').selectOption('demo');
  await page.locator('.tool-row').filter({ hasText: 'echo' }).waitFor();
  await page.getByLabel('Server').selectOption('memory');
  await page.getByText('No matching tools').waitFor();
  await page.getByRole('link', { name: 'Clear search and filters' }).click();
  await page.locator('.tool-row').filter({ hasText: 'get-sum' }).waitFor();
}));

test('tools: images, resources and progress are rendered', withPage('/#/tools/everything/get-tiny-image', async (page, context) => {
  const { g } = fixture;
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  const picture = page.locator('.answer img');
  await picture.waitFor();
  assert.ok(await picture.evaluate((i) => i.decode().then(() => i.naturalWidth > 0)));
  await page.goto(`${g.url}/#/tools/everything/get-resource-reference`);
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.locator('.answer .resource').first().waitFor();
  await page.goto(`${g.url}/#/tools/everything/get-structured-content?args=${encodeURIComponent('{"location":"New York"}')}`);
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.locator('.answer .tree-key', { hasText: 'temperature' }).first().waitFor();
  await page.goto(`${g.url}/#/tools/hostile/slow?args=${encodeURIComponent('{"ms":10,"hold":true}')}`);
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByText(/of 5/).first().waitFor();
  await context.request.post(`${g.url}/call_tool`, { data: { server: 'hostile', tool: 'release', arguments: {} } });
  await page.getByText('counted').waitFor();
}));

test('tools: stop a call', withPage('/#/tools/hostile/slow', async (page) => {
  await page.getByLabel(/^ms/).fill('20000');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByText(/Stopped/).waitFor();
}));

test('tools: show the definition in each provider format', withPage('/#/tools/memory/create_entities', async (page) => {
  await page.getByRole('tab', { name: 'Provider formats' }).click();
  for (const [id, text] of [['openai', /"name": "memory__create_entities"/], ['anthropic', /"input_schema"/], ['gemini', /"function_declarations"/], ['bedrock', /"toolSpec"/]]) {
    await page.getByLabel('Provider').selectOption(id);
    const code = page.locator('.code pre').first();
    await page.waitForFunction(([s]) => new RegExp(s).test(document.querySelector('.code pre')?.textContent ?? ''), [text.source]);
    assert.equal((await code.innerText()).match(/"name"/g)?.length > 0, true);
    assert.doesNotMatch(await code.innerText(), /read_graph/); // only this tool
  }
  await page.getByRole('tab', { name: 'Definition' }).click();
  await page.getByText('Definition as received from the server').waitFor();
}));

test('tools: a tool that requires approval runs when approved', withPage(`/#/tools/files/write_file?args=${encodeURIComponent(JSON.stringify({ path: join(folder, 'page.txt'), content: 'from the page' }))}`, async (page) => {
  await page.getByText('approval required').waitFor();
  await page.getByRole('button', { name: 'Allow and run' }).click();
  await page.locator('.answer').waitFor();
  assert.equal(readFileSync(join(folder, 'page.txt'), 'utf8'), 'from the page');
}));

test('code: a script with two calls shows them on a timeline, its output and its value', withPage('/#/code', async (page) => {
  const editor = page.getByRole('textbox', { name: 'Script' });
  await editor.fill(`const [sum, echoed] = await Promise.all([tools.everything.get_sum({ a: 2, b: 40 }), tools.call('everything:echo', { message: 'from a script' })])
console.log('two calls')
return { sum, echoed }`);
  await editor.press('Control+Enter');
  const result = page.getByRole('region', { name: 'Result' });
  await result.getByText('The sum of 2 and 40 is 42').waitFor();
  await result.getByText(/from a script/).waitFor();
  await waitForCount(result.getByRole('group', { name: 'Timeline' }).getByRole('listitem').filter({ hasText: /everything:/ }), 2);
  assert.equal(await result.getByLabel('Console output').innerText(), 'two calls');
  await screenshot(page, 'code');
  assert.deepEqual(await violations(page), []);
  await page.setViewportSize({ width: 390, height: 760 });
  await waitForNoOverflow(page, 'code');
  await screenshot(page, 'code-390');
  assert.deepEqual(await violations(page), []);
  await page.reload(); // the script is kept
  assert.match(await editor.inputValue(), /from a script/);
  await editor.fill('await tools.everything.trigger_long_running_operation({ duration: 3600, steps: 2 })');
  await editor.press('Control+Enter');
  await page.getByRole('region', { name: 'Calls' }).getByText('not ended').waitFor(); // shown while it runs
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByText('Stopped.').waitFor();
  await editor.fill('return = 1');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByRole('alert').waitFor();
}));

test('hostile content is shown as text', withPage('/#/chat', async (page) => {
  const { g } = fixture;
  const owned = () => page.evaluate(() => window.owned);
  await sendMessage(page, 'something hostile');
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
  await page.getByText('No such server').waitFor();
  await page.goto(`${g.url}/#/activity/${encodeURIComponent('<script>window.owned=1</script>')}`);
  await page.getByRole('alert').waitFor();
  assert.equal(await owned(), undefined);
}));

test('a result of 5 MB is shown in parts', withPage('/#/tools/hostile/huge', async (page) => {
  const { g } = fixture;
  // Measure the longest time for which the event loop was blocked.
  await page.evaluate(() => {
    window.longestBlockMs = 0;
    let last = performance.now();
    setInterval(() => {
      const now = performance.now();
      window.longestBlockMs = Math.max(window.longestBlockMs, now - last);
      last = now;
    }, 20);
  });
  for (const path of ['huge', 'hugejson']) {
    await page.goto(`${g.url}/#/tools/hostile/${path}`);
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.locator('.answer').waitFor();
    await page.locator('.answer .longtext, .answer .tree, .answer .data-table').first().waitFor();
    // Only a part is in the document; the rest is shown on request.
    assert.ok((await page.locator('.answer').innerHTML()).length < 1_000_000);
  }
  await page.locator('.answer').getByRole('button', { name: /more/ }).first().click();
  const longestBlockMs = await page.evaluate(() => window.longestBlockMs);
  console.log(`the page was blocked for at most ${Math.round(longestBlockMs)} ms`);
}));

test('5,000 tools can be scrolled and searched', withOwnGateway({ script: null, config: { mcpServers: { many: servers.many(5000) } } }, '/#/tools', async (page) => {
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
}));

test('a tool can be found and run with the keyboard only', withPage('/#/chat', async (page) => {
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

test('tools: earlier runs, presets, tables and resource links', withPage('/#/tools/memory/create_entities', async (page) => {
  await page.getByRole('button', { name: 'JSON', exact: true }).click();
  const box = page.getByLabel('Arguments as JSON');
  await box.fill('{"entities":[{"name":"Ada","entityType":"person","observations":["wrote the first program"]}]}');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.locator('.answer .data-table').getByRole('cell', { name: 'Ada', exact: true }).first().waitFor();
  await page.getByLabel('Name of the preset').fill('first');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await box.fill('{}');
  await page.getByRole('button', { name: 'first', exact: true }).click();
  assert.match(await box.inputValue(), /Ada/);
  await page.reload();
  await page.getByRole('button', { name: 'first', exact: true }).waitFor();
  await page.getByRole('button', { name: 'JSON', exact: true }).click();
  assert.doesNotMatch(await box.inputValue(), /Ada/);
  await page.getByRole('button', { name: 'Use arguments' }).first().click();
  await page.waitForFunction(() => document.querySelector('#run-json').value.includes('Ada'));
  assert.deepEqual(await violations(page), []);
  await page.getByRole('button', { name: 'Delete the preset first' }).click();
  await waitForCount(page.getByRole('button', { name: 'first', exact: true }), 0);

  await page.goto(`${fixture.g.url}/#/tools/everything/get-resource-links`);
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.locator('.answer').getByRole('button', { name: 'Open' }).first().click();
  await page.locator('.answer .resource .resource').first().waitFor();
}));

test('resources: read one and a template, complete the arguments of a prompt and start a chat with it', withPage('/#/resources', async (page) => {
  await page.getByLabel('Search resources and prompts').fill('dynamic text');
  await page.locator('.offer-row').filter({ hasText: 'template' }).first().click();
  await page.getByLabel('resourceId').fill('7');
  await page.getByRole('button', { name: 'Read', exact: true }).click();
  await page.locator('.detail').getByText(/resource/i).last().waitFor();
  await page.locator('.detail .result').waitFor();

  await page.getByLabel('Search resources and prompts').fill('team management');
  await page.locator('.offer-row').filter({ hasText: 'Team Management' }).click();
  await page.getByLabel('department').fill('Sales');
  await waitUntil(() => page.evaluate(() => [...document.querySelectorAll('datalist option')].some((o) => o.value === 'David')), 'no completion');
  await page.getByLabel('name', { exact: true }).fill('Eve');
  await page.getByRole('button', { name: 'Show', exact: true }).click();
  await page.getByText('Please promote Eve to the head of the Sales team.').waitFor();
  await screenshot(page, 'resources-prompt');
  assert.deepEqual(await violations(page), []);
  await page.getByRole('button', { name: 'Start a chat' }).click();
  await page.getByRole('textbox', { name: 'Message' }).waitFor();
  assert.equal(await page.getByRole('textbox', { name: 'Message' }).inputValue(), 'Please promote Eve to the head of the Sales team.');
}));
