// Signing in to the page: the token of the printed URL, sessions and several tabs.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launchBrowser, screenshot, violations, withOwnGateway } from './fixture.mjs';

let chrome;
before(async () => {
  chrome = await launchBrowser();
});
after(() => chrome?.close());
const fixture = () => ({ chrome });

const admin = (page) => page.getByText('administrator', { exact: true });

test('the token is exchanged for a session and removed from the URL', withOwnGateway(fixture, { script: null }, '/#/settings', async (page, own) => {
  await admin(page).waitFor();
  assert.ok(!page.url().includes('token'), page.url());
  assert.equal(await page.evaluate(() => document.cookie), ''); // other ports of this host would get it
  const session = await page.evaluate(() => localStorage.getItem('junctor.session'));
  assert.ok(session && session !== own.token);
  await page.getByText('Signed-in browsers', { exact: true }).waitFor();
  await page.getByText('this browser', { exact: true }).waitFor();
  assert.deepEqual(await violations(page), []);
  await screenshot(page, 'settings-signed-in');
  // A reload needs no token.
  await page.reload();
  await admin(page).waitFor();
}));

test('without the token the page has no administrator rights and explains how to get them', withOwnGateway(fixture, { script: null }, '/#/settings', async (page, own) => {
  await page.getByText('Signed in as').waitFor();
  await page.getByText('junctor open').first().waitFor();
  assert.equal(await admin(page).count(), 0);
  assert.deepEqual(await violations(page), []);
  await screenshot(page, 'settings-without-rights');
  await page.goto(`${own.url}/#/servers`);
  await page.getByText('Only administrators can change servers').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Add' }).count(), 0);
  await page.goto(`${own.url}/#/settings/keys`);
  await page.getByText('Administrators only').waitFor();
  // A page of a token that is not valid says so, and works.
  await page.goto(`${own.url}/?token=AAAAAAAAAAAAAAAAAAAAAAAAAA`);
  await page.getByText('The token in the URL is not valid').waitFor();
  assert.ok(!page.url().includes('token'), page.url());
}, { token: false }));

test('signing out in one tab signs out all tabs', withOwnGateway(fixture, { script: null }, '/#/settings', async (page, own, context) => {
  await admin(page).waitFor();
  const other = await context.newPage();
  await other.goto(`${own.url}/#/settings`);
  await admin(other).waitFor();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('button', { name: 'Sign in with a key' }).waitFor();
  await other.getByRole('button', { name: 'Sign in with a key' }).waitFor();
  assert.equal(await admin(other).count(), 0);
  await other.goto(`${own.url}/?token=${own.token}#/settings`);
  await admin(other).waitFor();
  await admin(page).waitFor();
  // A session that was ended elsewhere leaves the page as any local caller.
  const session = await page.evaluate(() => localStorage.getItem('junctor.session'));
  const res = await fetch(`${own.url}/api/session`, { method: 'DELETE', headers: { 'X-Junctor-Session': session } });
  assert.equal(res.status, 204);
  await page.getByRole('button', { name: 'Sign in with a key' }).waitFor();
}));
