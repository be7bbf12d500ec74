import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { PLUGIN } from '../wordpress/scene.ts'
import { startChromium } from './chromium.ts'

const SITE = 'https://site.example'
const SERVER = 'https://video.example'
const PLAYER = `customElements.define('reelgate-player', class extends HTMLElement { getPlayer() { return new Promise(() => {}) } })`

test('F-349: markup of a lesson that an author wrote by hand gives the player the attributes of lessons and no others', async () => {
  const chromium = await startChromium()
  onTestFinished(() => chromium.close())
  const page = await chromium.newPage()
  const player = { autoplay: 'true', ccLanguage: 'de', onanimationstart: 'alert(1)', style: 'animation: x', otp: 'another' }
  const values = { server: SERVER, ajax: '/ajax', speeds: [], texts: {} }
  const answers: Record<string, { contentType: string; body: string }> = {
    [`${SITE}/`]: {
      contentType: 'text/html',
      body: `<!doctype html><div class="reelgate-video" data-reelgate='${JSON.stringify({ tag: {}, player })}'></div>
<script>window.reelgateSite = ${JSON.stringify(values)}</script>
<script>${await readFile(join(PLUGIN, 'assets/lesson.js'), 'utf8')}</script>`,
    },
    [`${SITE}/ajax`]: {
      contentType: 'application/json',
      body: JSON.stringify({ otp: 'own', playbackInfo: 'info', signedIn: false }),
    },
    [`${SERVER}/v2/player.js`]: { contentType: 'text/javascript', body: PLAYER },
  }
  await page.route('**/*', (route) => route.fulfill(answers[route.request().url()] ?? { status: 404 }))
  await page.goto(`${SITE}/`)
  const element = page.locator('reelgate-player')
  await element.waitFor({ state: 'attached' })
  const attributes = await element.evaluate(({ attributes: found }) => [...found].map(({ name, value }) => [name, value]))
  expect(Object.fromEntries(attributes)).toEqual({
    ...{ otp: 'own', playbackinfo: 'info', autoplay: 'true', cclanguage: 'de' },
    style: 'display: block; width: 100%; height: 100%;',
  })
})
