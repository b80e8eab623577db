// Regenerates the screenshots of README.md and docs: make screenshots.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gateway, launchBrowser, replyFinished, sendMessage, servers } from './fixture.mjs';

const out = process.argv[2];
if (!out) throw new Error('usage: node web/screenshots.mjs FOLDER');
mkdirSync(out, { recursive: true });
const home = mkdtempSync(join(tmpdir(), 'junctor-shots-'));
const folder = join(home, 'notes');
mkdirSync(folder);
writeFileSync(join(folder, 'figures.csv'), 'month,sold\nJanuary,19\nFebruary,23\n');

const script = {
  rules: [
    { when: { system: 'Write a title' }, reply: { text: 'Sales of January and February' } },
    { when: { user: 'figures', results: 0 }, reply: { text: 'I will read the file.', calls: [{ tool: 'files:read_text_file', args: { path: join(folder, 'figures.csv') } }] } },
    { when: { user: 'figures', results: 1 }, reply: { text: 'Now I add both months.', calls: [{ tool: 'everything:get-sum', args: { a: 19, b: 23 } }] } },
    {
      when: { user: 'figures', results: 2 },
      reply: { text: 'You sold **42** in both months:\n\n| month | sold |\n| --- | ---: |\n| January | 19 |\n| February | 23 |\n| **sum** | **42** |\n\nTo check it yourself:\n\n```python\nprint(sum([19, 23]))  # 42\n```\n' },
    },
  ],
};

/** The screenshots: a name, the path and the steps before. */
const screenshots = [
  [
    'page-chat',
    '/#/chat',
    async (page) => {
      await sendMessage(page, 'What do the figures in my notes add up to?');
      await page.getByText('To check it yourself').waitFor();
      await replyFinished(page);
      await page.getByRole('heading', { name: 'Sales of January and February' }).waitFor();
      await page.locator('.hljs-built_in').first().waitFor();
    },
  ],
  [
    'page-tools',
    `/#/tools/everything/get-sum?args=${encodeURIComponent('{"a":19,"b":23}')}`,
    async (page) => {
      await page.getByRole('button', { name: 'Run', exact: true }).click();
      await page.locator('.answer').getByText('done').waitFor();
    },
  ],
];

const chrome = await launchBrowser();
const g = await gateway({ home, script, config: { mcpServers: { everything: servers.everything, memory: servers.memory, files: servers.files(folder) } }, tools: ['everything:get-sum', 'memory:read_graph', 'files:read_text_file'] });
try {
  const context = await chrome.newContext({ viewport: { width: 1280, height: 820 }, reducedMotion: 'reduce', colorScheme: 'light' });
  const page = await context.newPage();
  await page.goto(`${g.url}/?token=${g.token}`);
  for (const [name, path, prepare] of screenshots) {
    await page.goto(g.url + path);
    await prepare(page);
    await page.screenshot({ path: join(out, name + '.png') });
    console.log(join(out, name + '.png'));
  }
} finally {
  await chrome.close();
  await g.stop();
  rmSync(home, { recursive: true, force: true });
}
