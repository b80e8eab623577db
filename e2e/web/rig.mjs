// A gateway, a scripted model, MCP servers and a browser, all real, for the
// tests of the web page. Everything ends with the test that began it.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, mkdirSync, readFileSync, writeFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const here = dirname(fileURLToPath(import.meta.url));
export const modules = join(here, '..', 'node_modules');
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** How long anything may take; generous, because machines are busy. */
export const patience = 60_000;

/** start runs a program and waits for the line that says where it is. */
function start(program, args, options, line) {
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], ...options });
  let said = '';
  const exited = new Promise((done) => child.once('exit', done));
  const ready = new Promise((done, fail) => {
    const read = (stream) =>
      createInterface({ input: stream }).on('line', (text) => {
        said = (said + text + '\n').slice(-20_000);
        const found = line.exec(text);
        if (found) done(found[1]);
      });
    read(child.stdout);
    read(child.stderr);
    child.once('error', fail);
    child.once('exit', (code) => fail(new Error(`${program} ended with ${code}:\n${said}`)));
    setTimeout(() => fail(new Error(`${program} did not start:\n${said}`)), patience).unref();
  });
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
    await exited;
  };
  return { ready, stop, said: () => said };
}

/** guarded starts an MCP server that wants a sign-in, and the authorization server where one does. */
export async function guarded() {
  const run = start(process.execPath, [join(here, '..', 'testdata', 'guarded.mjs')], { env: { ...process.env, E2E: join(here, '..'), TOKEN_LIFE: '3600' } }, /^(\{.*issuer.*\})$/);
  return { ...JSON.parse(await run.ready), stop: run.stop };
}

/** The servers that the tests use, from npm and from here. */
export const servers = {
  everything: { command: process.execPath, args: [join(modules, '@modelcontextprotocol/server-everything/dist/index.js'), 'stdio'] },
  memory: { command: process.execPath, args: [join(modules, '@modelcontextprotocol/server-memory/dist/index.js')] },
  files: (folder) => ({ command: process.execPath, args: [join(modules, '@modelcontextprotocol/server-filesystem/dist/index.js'), folder] }),
  hostile: { command: process.execPath, args: [join(here, 'hostile.mjs')] },
  many: (n) => ({ command: process.execPath, args: [join(here, 'many.mjs'), String(n)] }),
};

/**
 * gateway starts Junctor in a home of its own, with a scripted model unless
 * script is null.
 */
export async function gateway({ config, script = { rules: [] }, model: name = 'gpt-test', env = {}, home } = {}) {
  const own = !home;
  home ??= mkdtempSync(join(tmpdir(), 'junctor-web-'));
  mkdirSync(join(home, '.config', 'junctor'), { recursive: true });
  const file = join(home, '.config', 'junctor', 'junctor.json');
  let model = null;
  const more = {};
  if (script) {
    const path = join(home, 'script.json');
    writeFileSync(path, JSON.stringify(script));
    model = start(process.env.LLMSCRIPT_BIN, ['-script', path, '-stdin'], {}, /^(http:\S+)/);
    const base = await model.ready;
    more.llm = [
      { provider: 'openai', model: name, baseUrl: base + '/v1', apiKey: 'k' },
      { provider: 'anthropic', model: 'claude-test', baseUrl: base, apiKey: 'k' },
    ];
  }
  if (config || script) writeFileSync(file, JSON.stringify({ ...more, ...config }, null, 2));
  const run = (listen = '127.0.0.1:0') =>
    start(process.env.JUNCTOR_BIN, ['serve', '--listen', listen], {
      cwd: home,
      env: { PATH: process.env.PATH, HOME: home, XDG_CONFIG_HOME: join(home, '.config'), XDG_DATA_HOME: join(home, '.data'), TMPDIR: process.env.TMPDIR ?? '/tmp', OLLAMA_HOST: '127.0.0.1:9', ...env },
    }, /is at (http:\S+)/);
  let process_ = run();
  const url = await process_.ready;
  return {
    url,
    home,
    file,
    said: () => process_.said(),
    /** restart stops the gateway and starts it again at the same address. */
    async restart(during = async () => {}) {
      await process_.stop();
      await during();
      process_ = run(new URL(url).host);
      await process_.ready;
    },
    async stop() {
      await process_.stop();
      await model?.stop();
      if (own) rmSync(home, { recursive: true, force: true });
    },
  };
}

/** browser starts Chromium; it reaches nothing but this machine. */
export async function browser() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--autoplay-policy=no-user-gesture-required'],
  });
}

/**
 * open opens a page and keeps what must not happen on it: violations of the
 * policy, uncaught errors, requests to other hosts.
 */
export async function open(chrome, url, options = {}) {
  const { path = '/', prepare, ...rest } = options;
  const context = await chrome.newContext({ viewport: { width: 1280, height: 820 }, reducedMotion: 'reduce', ...rest });
  context.setDefaultTimeout(patience);
  const page = await context.newPage();
  const wrong = [];
  await prepare?.(page);
  page.on('console', (m) => {
    const text = m.text();
    if (/Content.Security.Policy|Refused to/i.test(text)) wrong.push('policy: ' + text);
    else if (m.type() === 'error' && !/Failed to load resource|ERR_CONNECTION_REFUSED|WebSocket connection/.test(text)) wrong.push('console: ' + text);
  });
  page.on('pageerror', (e) => wrong.push('error: ' + e.message));
  page.on('request', (r) => {
    const u = new URL(r.url());
    if (!['data:', 'blob:', 'about:'].includes(u.protocol) && u.host !== new URL(url).host) wrong.push('request: ' + r.url());
  });
  await page.goto(url + path);
  return { page, context, wrong };
}

/** say types a message and sends it. */
export async function say(page, text) {
  const box = page.getByRole('textbox', { name: 'Message' });
  await box.fill(text);
  await box.press('Enter');
}

/** settled waits until no reply is under way. */
export const settled = (page) => page.getByRole('button', { name: 'Send', exact: true }).waitFor();

/**
 * holding makes tests of one gateway: each opens a page, uses it, and holds it
 * to what must never happen there.
 */
export const holding = (rig) => (path, f, options) => async () => {
  const { chrome, g, home } = rig();
  const { page, context, wrong } = await open(chrome, g.url, { path, ...options });
  try {
    await f(page, context);
    assert.deepEqual(wrong, []);
  } catch (e) {
    await page.screenshot({ path: join(process.env.SHOTS ?? home, 'failed.png') }).catch(() => {});
    throw e;
  } finally {
    await context.close();
  }
};

/** violations runs axe and returns what is serious. */
export async function violations(page) {
  // Injected by the debugger, which the page's policy does not concern.
  await page.evaluate(axe);
  const result = await page.evaluate(() =>
    // eslint-disable-next-line no-undef
    axe.run(document, { resultTypes: ['violations'] }),
  );
  return result.violations
    .filter((v) => v.impact === 'serious' || v.impact === 'critical')
    .map((v) => `${v.id} (${v.impact}): ${v.help}\n  ${v.nodes.slice(0, 4).map((n) => n.target.join(' ') + ' ' + n.failureSummary?.split('\n').slice(1, 2)).join('\n  ')}`);
}

/** shot takes a picture when somebody wants to look at it. */
export async function shot(page, name) {
  if (!process.env.SHOTS) return;
  mkdirSync(process.env.SHOTS, { recursive: true });
  await page.screenshot({ path: join(process.env.SHOTS, name + '.png') });
}

/** sideways reports how far the page can be scrolled sideways: it must not. */
export const sideways = (page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
