// A gateway, a scripted model, MCP servers and a browser, all real, for the
// tests of the web page. Everything is stopped when its test ends.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, mkdirSync, readFileSync, writeFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const here = dirname(fileURLToPath(import.meta.url));
export const modules = join(here, '..', 'node_modules');
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The timeout of all waits in milliseconds; generous for busy machines. */
export const timeout = 60_000;

/** The output of failed tests: a folder for each, with screenshots, the page's console and the gateway's log. */
const failures = process.env.FAILURES ?? join(here, '..', '..', '.cache', 'failed');

/** waitUntil waits for a condition, and fails with the message, or the result of the message function, if the condition does not become true. */
export async function waitUntil(condition, message) {
  for (const end = Date.now() + timeout; !(await condition()); ) {
    assert.ok(Date.now() < end, typeof message === 'function' ? await message() : message);
    await new Promise((r) => setTimeout(r, 50));
  }
}

/** waitForCount waits until a locator matches n elements. */
export const waitForCount = (locator, n) => waitUntil(async () => (await locator.count()) === n, async () => `${await locator.count()} of ${locator}, want ${n}`);

/** startProgram runs a program and waits for the line that matches readyPattern, whose first group is the result. */
function startProgram(program, args, options, readyPattern) {
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], ...options });
  let output = '';
  const exited = new Promise((done) => child.once('exit', done));
  const ready = new Promise((done, fail) => {
    const read = (stream) =>
      createInterface({ input: stream }).on('line', (text) => {
        output = (output + text + '\n').slice(-1_000_000);
        const match = readyPattern.exec(text);
        if (match) done(match[1]);
      });
    read(child.stdout);
    read(child.stderr);
    child.once('error', fail);
    child.once('exit', (code) => fail(new Error(`${program} ended with ${code}:\n${output}`)));
    setTimeout(() => fail(new Error(`${program} did not start:\n${output}`)), timeout).unref();
  });
  const stop = async (signal = 'SIGTERM') => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    await exited;
  };
  return { ready, stop, output: () => output };
}

/** startGuardedServer starts an MCP server that requires a sign-in, and its authorization server. */
export async function startGuardedServer() {
  const run = startProgram(process.execPath, [join(here, '..', 'testdata', 'guarded.mjs')], { env: { ...process.env, E2E: join(here, '..'), TOKEN_LIFE: '3600' } }, /^(\{.*issuer.*\})$/);
  return { ...JSON.parse(await run.ready), stop: run.stop };
}

/** The MCP servers for the tests, from npm and from this folder. */
export const servers = {
  everything: { command: process.execPath, args: [join(modules, '@modelcontextprotocol/server-everything/dist/index.js'), 'stdio'] },
  memory: { command: process.execPath, args: [join(modules, '@modelcontextprotocol/server-memory/dist/index.js')] },
  files: (folder) => ({ command: process.execPath, args: [join(modules, '@modelcontextprotocol/server-filesystem/dist/index.js'), folder] }),
  hostile: { command: process.execPath, args: [join(here, 'hostile.mjs')] },
  badapps: { command: process.execPath, args: [join(here, 'badapps.mjs')] },
  clock: { command: process.execPath, args: [join(modules, '@modelcontextprotocol/server-basic-vanillajs/dist/index.js'), '--stdio'] },
  debug: { command: process.execPath, args: [join(modules, '@modelcontextprotocol/server-debug/dist/index.js'), '--stdio'], env: { DEBUG_LOG_FILE: '/dev/null' } },
  many: (n) => ({ command: process.execPath, args: [join(here, 'many.mjs'), String(n)] }),
};

/** The administrator token of each gateway, by URL. */
const tokens = new Map();

/**
 * gateway starts Junctor in its own home directory, with a scripted model unless
 * script is null, and waits until it has the tools, each a server:tool. A
 * server may have more of them some time after it is connected: the reference
 * server registers those that ask the person when it knows that it may.
 */
export async function gateway({ config, script = { rules: [] }, model: name = 'gpt-test', env = {}, home, tools = [] } = {}) {
  const ownsHome = !home;
  home ??= mkdtempSync(join(tmpdir(), 'junctor-web-'));
  mkdirSync(join(home, '.config', 'junctor'), { recursive: true });
  const file = join(home, '.config', 'junctor', 'junctor.json');
  let model = null;
  const llmConfig = {};
  if (script) {
    const path = join(home, 'script.json');
    writeFileSync(path, JSON.stringify(script));
    model = startProgram(process.env.LLMSCRIPT_BIN, ['-script', path, '-stdin'], {}, /^(http:\S+)/);
    const base = await model.ready;
    llmConfig.llm = [
      { provider: 'openai', model: name, baseUrl: base + '/v1', apiKey: 'k' },
      { provider: 'anthropic', model: 'claude-test', baseUrl: base, apiKey: 'k' },
    ];
  }
  if (config || script) writeFileSync(file, JSON.stringify({ ...llmConfig, ...config }, null, 2));
  const start = () =>
    // Rights come from the token in the printed address, not from a header.
    startProgram(process.env.JUNCTOR_BIN, ['serve', '--print-url', '--listen', '127.0.0.1:0'], {
      cwd: home,
      env: { PATH: process.env.PATH, HOME: home, XDG_CONFIG_HOME: join(home, '.config'), XDG_DATA_HOME: join(home, '.data'), TMPDIR: process.env.TMPDIR ?? '/tmp', OLLAMA_HOST: '127.0.0.1:9', ...env },
    }, /^(http:\S+\?token=\S+)$/);
  let gatewayProcess = start();
  const earlierOutput = []; // before restarts
  const printed = new URL(await gatewayProcess.ready);
  const directUrl = printed.origin;
  const token = printed.searchParams.get('token');
  tokens.set(directUrl, token);
  let proxy = null;
  const g = {
    url: directUrl,
    token,
    home,
    file,
    output: () => [...earlierOutput, gatewayProcess.output()].join('--- restarted ---\n'),
    /** waitForTools waits for tools. */
    waitForTools: (...names) =>
      waitUntil(
        async () => {
          const response = await fetch(`${g.url}/api/tools`).then((r) => r.json(), () => ({}));
          return names.every((n) => response.tools?.some((t) => `${t.server}:${t.tool}` === n));
        },
        () => `the gateway lacks a tool of ${names.join(', ')}:\n${g.output()}`,
      ),
    /** addProxy starts a proxy in front of the gateway, whose URL stays the same over restarts. */
    async addProxy() {
      proxy = await startProxy();
      proxy.forwardTo(directUrl);
      g.url = proxy.url;
      tokens.set(proxy.url, token);
      return g;
    },
    /** restart stops the gateway with a signal, and starts it again behind its proxy. */
    async restart(during = async () => {}, signal = 'SIGTERM') {
      proxy.forwardTo(null);
      await gatewayProcess.stop(signal);
      earlierOutput.push(gatewayProcess.output());
      await during();
      gatewayProcess = start();
      proxy.forwardTo(new URL(await gatewayProcess.ready).origin);
    },
    async stop() {
      await gatewayProcess.stop();
      await model?.stop();
      await proxy?.stop();
      if (ownsHome) rmSync(home, { recursive: true, force: true });
    },
  };
  if (tools.length > 0) await g.waitForTools(...tools);
  return g;
}

/** startProxy forwards connections to the gateway's current address, and closes them while there is none. */
async function startProxy() {
  const sockets = new Set();
  let target = null;
  const server = createServer((client) => {
    sockets.add(client);
    client.on('error', () => {}).on('close', () => sockets.delete(client));
    if (!target) return client.destroy();
    const upstream = connect(Number(target.port), target.hostname);
    upstream.on('error', () => client.destroy()).on('close', () => client.destroy());
    client.on('close', () => upstream.destroy());
    client.pipe(upstream).pipe(client);
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    forwardTo: (url) => (target = url && new URL(url)),
    stop: () => new Promise((done) => {
      server.close(done);
      for (const s of sockets) s.destroy();
    }),
  };
}

/**
 * launchBrowser starts Chromium; it connects only to this machine. Tests of frames that
 * must be isolated need the ordinary one, others the one without windows, which
 * takes a third of the CPU.
 */
export async function launchBrowser({ isolated = false } = {}) {
  const { CHROMIUM = '/usr/bin/chromium', CHROMIUM_HEADLESS = CHROMIUM } = process.env;
  return chromium.launch({
    executablePath: isolated ? CHROMIUM : CHROMIUM_HEADLESS,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--autoplay-policy=no-user-gesture-required'],
  });
}

/**
 * openPage opens a page and records what must not happen on it: violations of its content security
 * policy, uncaught errors, requests to other hosts. The page is opened with the
 * gateway's token, as junctor open does, unless token is false.
 */
async function openPage(chrome, url, options = {}) {
  const { path = '/', prepare, token = true, expected, ...rest } = options;
  const context = await chrome.newContext({ viewport: { width: 1280, height: 820 }, reducedMotion: 'reduce', ...rest });
  context.setDefaultTimeout(timeout);
  const page = await context.newPage();
  const unexpected = [];
  const consoleLines = [];
  await prepare?.(page);
  page.on('console', (m) => {
    const text = m.text();
    consoleLines.push(`${m.type()}: ${text}`);
    if (/Content.Security.Policy|Refused to/i.test(text)) unexpected.push('policy: ' + text);
    else if (m.type() === 'error' && !/Failed to load resource|ERR_CONNECTION_|ERR_EMPTY_RESPONSE|ERR_SOCKET|WebSocket connection/.test(text)) unexpected.push('console: ' + text);
  });
  page.on('pageerror', (e) => {
    consoleLines.push('uncaught: ' + (e.stack ?? e.message));
    unexpected.push('error: ' + e.message);
  });
  page.on('requestfailed', (r) => consoleLines.push(`request failed: ${r.method()} ${r.url()}: ${r.failure()?.errorText}`));
  page.on('request', (r) => {
    const u = new URL(r.url());
    if (!['data:', 'blob:', 'about:'].includes(u.protocol) && u.host !== new URL(url).host) unexpected.push('request: ' + r.url());
  });
  const address = new URL(url + path);
  if (token && tokens.has(url)) address.searchParams.set('token', tokens.get(url));
  await page.goto(address.href);
  return { page, context, unexpected, console: consoleLines };
}

/**
 * usePage opens a page of a gateway and uses it, and asserts what must never
 * happen there, except what is expected. A failed test leaves screenshots of all its pages, their
 * console and the gateway's log in a folder.
 */
async function usePage(t, chrome, g, options, f) {
  const opened = await openPage(chrome, g.url, options);
  try {
    await f(opened.page, opened.context);
    assert.deepEqual(opened.unexpected.filter((w) => !options.expected?.test(w)), []);
  } catch (e) {
    const folder = join(failures, 'web-' + t.name.replace(/[^A-Za-z0-9]+/g, '-').slice(0, 80));
    mkdirSync(folder, { recursive: true });
    for (const [i, page] of opened.context.pages().entries()) await page.screenshot({ path: join(folder, `page-${i + 1}.png`), timeout: 10_000 }).catch(() => {});
    writeFileSync(join(folder, 'console.txt'), `at ${opened.page.url()}\n${opened.console.join('\n')}\n`);
    writeFileSync(join(folder, 'gateway.log'), g.output());
    e.message += `\nscreenshots, the console and the gateway's log: ${folder}`;
    throw e;
  } finally {
    await opened.context.close();
  }
}

/** pageTests makes tests of one gateway: each opens a page at a path and uses it. */
export const pageTests = (fixture) => (path, f, options) => (t) => {
  const { chrome, g } = fixture();
  return usePage(t, chrome, g, { path, ...options }, f);
};

/** withOwnGateway makes a test with its own gateway, which is passed to f. */
export const withOwnGateway = (fixture, options, path, f, pageOptions) => async (t) => {
  const own = await gateway(options);
  try {
    if (options.restarts) await own.addProxy();
    await usePage(t, fixture().chrome, own, { path, ...pageOptions }, (page, context) => f(page, own, context));
  } finally {
    await own.stop();
  }
};

/** sendMessage types a message and sends it. */
export async function sendMessage(page, text) {
  const box = page.getByRole('textbox', { name: 'Message' });
  await box.fill(text);
  await box.press('Enter');
}

/** replyFinished waits until no reply is in progress. */
export const replyFinished = (page) => page.getByRole('button', { name: 'Send', exact: true }).waitFor();

/** The rules of axe that depend on the theme. */
export const colorRules = ['color-contrast', 'link-in-text-block'];

/** violations runs axe, all its rules or those that are named, and returns the serious violations. */
export async function violations(page, rules) {
  // Injected through the debugger, to which the page's policy does not apply. It is kept until the next navigation.
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe);
  const result = await page.evaluate(
    // eslint-disable-next-line no-undef
    (rules) => axe.run(document, { resultTypes: ['violations'], ...(rules && { runOnly: rules }) }),
    rules,
  );
  return result.violations
    .filter((v) => v.impact === 'serious' || v.impact === 'critical')
    .map((v) => `${v.id} (${v.impact}): ${v.help}\n  ${v.nodes.slice(0, 4).map((n) => n.target.join(' ') + ' ' + n.failureSummary?.split('\n').slice(1, 2)).join('\n  ')}`);
}

/** screenshot saves a screenshot if SHOTS names a folder. */
export async function screenshot(page, name) {
  if (!process.env.SHOTS) return;
  mkdirSync(process.env.SHOTS, { recursive: true });
  await page.screenshot({ path: join(process.env.SHOTS, name + '.png') });
}

/** waitForNoOverflow waits until the page is no wider than its viewport. */
export const waitForNoOverflow = (page, name) => waitUntil(() => page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth), `${name} scrolls sideways`);
