// A person with a browser who lets programs sign in: each line of stdin is the
// address that a program opened. The person enters the key, consents, and the
// address to which the browser is sent is printed, with the text of the page.
import fs from 'node:fs'
import os from 'node:os'
import readline from 'node:readline'
import { createRequire } from 'node:module'
import path from 'node:path'

const { chromium } = createRequire(path.join(process.env.E2E, 'package.json'))('playwright-core')
const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'browser-'))
const context = await chromium.launchPersistentContext(profile, {
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  viewport: { width: 360, height: 640 },
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync'],
})
try {
  for await (const address of readline.createInterface({ input: process.stdin })) {
    const page = await context.newPage()
    page.setDefaultTimeout(60000)
    const problems = []
    page.on('console', (m) => m.type() === 'error' && problems.push(m.text()))
    await page.goto(address)
    const key = page.locator('input[name=key]')
    await key.waitFor()
    const text = await page.locator('main').innerText()
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)
    const own = new URL(page.url()).origin
    const left = page.waitForRequest((r) => r.isNavigationRequest() && new URL(r.url()).origin !== own)
    await key.fill(process.env.KEY)
    await page.locator('button.allow').click()
    const url = (await left).url()
    await page.waitForLoadState().catch(() => {}) // nothing may listen there
    console.log(JSON.stringify({ url, text, wide, problems }))
    await page.close()
  }
} finally {
  await context.close()
  fs.rmSync(profile, { recursive: true, force: true })
}
