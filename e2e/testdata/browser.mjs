// A person with a browser: opens the address given last, signs in, consents,
// and prints the text of the page at which that ends. It loads nothing that is
// not on this machine.
import fs from 'node:fs'
import os from 'node:os'
import { createRequire } from 'node:module'
import path from 'node:path'

const { chromium } = createRequire(path.join(process.env.E2E, 'package.json'))('playwright-core')
const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'browser-'))
const context = await chromium.launchPersistentContext(profile, {
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync'],
})
try {
  const page = await context.newPage()
  page.setDefaultTimeout(60000)
  await page.route('**/*', (route) => new URL(route.request().url()).hostname === '127.0.0.1' ? route.continue() : route.abort())
  await page.goto(process.argv.at(-1))
  for (let step = 0; step < 10; step++) {
    if (await page.locator('main h1').count() && /oauth\/callback/.test(page.url())) break
    if (process.env.DENY && await page.getByText('Cancel').count()) {
      await Promise.all([page.waitForNavigation(), page.getByText('Cancel').first().click()])
      continue
    }
    if (await page.locator('input[name=login]').count()) {
      await page.fill('input[name=login]', 'ada')
      await page.fill('input[name=password]', 'any')
    }
    await Promise.all([page.waitForNavigation(), page.locator('button[type=submit]').click()])
  }
  const text = await page.locator('main').innerText()
  console.log(JSON.stringify({ url: page.url().split('?')[0], text }))
  if (process.env.SAID) fs.writeFileSync(process.env.SAID, text)
} finally {
  await context.close()
  // Processes of the browser may still write to the profile.
  fs.rmSync(profile, { recursive: true, force: true, maxRetries: 20 })
}
