// How the page gets its rights: the token of the printed address, sessions, and
// several tabs that sign in and out.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { alone, browser, shot, violations } from './rig.mjs';

let chrome;
before(async () => {
  chrome = await browser();
});
after(() => chrome?.close());
const rig = () => ({ chrome });

const admin = (page) => page.getByText('administrator', { exact: true });

test('the token: exchanged for a session and gone from the address', alone(rig, { script: null }, '/#/settings', async (page, own) => {
  await admin(page).waitFor();
  assert.ok(!page.url().includes('token'), page.url());
  assert.equal(await page.evaluate(() => document.cookie), ''); // other ports of this host would get it
  const session = await page.evaluate(() => localStorage.getItem('junctor.session'));
  assert.ok(session && session !== own.token);
  await page.getByText('Signed in', { exact: true }).waitFor();
  await page.getByText('this one').waitFor();
  assert.deepEqual(await violations(page), []);
  await shot(page, 'settings-signed-in');
  // A reload needs no token.
  await page.reload();
  await admin(page).waitFor();
}));

test('without the token: any local caller, who is told how to get the rights', alone(rig, { script: null }, '/#/settings', async (page, own) => {
  await page.getByText('You are').waitFor();
  await page.getByText('junctor open').first().waitFor();
  assert.equal(await admin(page).count(), 0);
  assert.deepEqual(await violations(page), []);
  await shot(page, 'settings-without-rights');
  await page.goto(`${own.url}/#/servers`);
  await page.getByText('Only administrators change servers').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Add' }).count(), 0);
  await page.goto(`${own.url}/#/settings/keys`);
  await page.getByText('For administrators').waitFor();
  // A page of a token that is not valid says so, and works.
  await page.goto(`${own.url}/?token=AAAAAAAAAAAAAAAAAAAAAAAAAA`);
  await page.getByText('The token in the address is not valid here').waitFor();
  assert.ok(!page.url().includes('token'), page.url());
}, { token: false }));

test('several tabs: signing out of one signs out of all, and in again', alone(rig, { script: null }, '/#/settings', async (page, own, context) => {
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
