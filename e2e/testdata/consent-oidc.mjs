// A person with a browser who signs in at the OpenID provider on the consent
// page whose address is given, consents, and prints where the browser is sent,
// with the text of the page before that.
import fs from 'node:fs'
import os from 'node:os'
import { createRequire } from 'node:module'
import path from 'node:path'

const { chromium } = createRequire(path.join(process.env.E2E, 'package.json'))('playwright-core')
const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'browser-'))
const context = await chromium.launchPersistentContext(profile, {
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  ignoreHTTPSErrors: true,
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync'],
})
try {
  const page = await context.newPage()
  page.setDefaultTimeout(60000)
  await page.goto(process.argv.at(-1))
  const own = new URL(page.url()).origin
  await page.locator('a.signin').click()
  await page.fill('input[name=login]', 'ada')
  await page.fill('input[name=password]', 'any')
  await page.locator('button[type=submit]').click()
  await page.locator('input[name=prompt][value=consent]').waitFor({ state: 'attached' })
  await page.locator('button[type=submit]').click()
  await page.waitForURL((url) => url.origin === own && url.pathname === '/oauth/consent')
  const text = await page.locator('main').innerText()
  const left = page.waitForRequest((r) => r.isNavigationRequest() && new URL(r.url()).origin !== own)
  await page.locator('button.allow').click()
  console.log(JSON.stringify({ url: (await left).url(), text }))
} finally {
  await context.close()
  fs.rmSync(profile, { recursive: true, force: true })
}
