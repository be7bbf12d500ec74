import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { PLUGIN } from '../wordpress/scene.ts'
import { startChromium } from './chromium.ts'

const SITE = 'https://site.example'
const SERVER = 'https://video.example'
const NO_PLAYER = 'new Promise(() => {})'

/** A page with a lesson. @param found what its player's `getPlayer` returns, as a script. @returns the page, and what it has asked the site */
async function openLesson(player: object, found: string, signedIn: boolean) {
  const chromium = await startChromium()
  onTestFinished(() => chromium.close())
  const page = await chromium.newPage()
  const asked: string[] = []
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
      body: JSON.stringify({ otp: 'own', playbackInfo: 'info', signedIn }),
    },
    [`${SERVER}/v2/player.js`]: {
      contentType: 'text/javascript',
      body: `customElements.define('reelgate-player', class extends HTMLElement { getPlayer() { return ${found} } })`,
    },
  }
  await page.route('**/*', (route) => {
    const action = new URLSearchParams(route.request().postData() ?? '').get('action')
    if (action) asked.push(action)
    if (action === 'reelgate_completed') return route.fulfill({ json: { completed: true } })
    return route.fulfill(answers[route.request().url()] ?? { status: 404 })
  })
  await page.goto(`${SITE}/`)
  return { page, asked }
}

test('F-349: markup of a lesson that an author wrote by hand gives the player the attributes of lessons and no others', async () => {
  const player = { autoplay: 'true', ccLanguage: 'de', onanimationstart: 'alert(1)', style: 'animation: x', otp: 'another' }
  const { page } = await openLesson(player, NO_PLAYER, false)
  const element = page.locator('reelgate-player')
  await element.waitFor({ state: 'attached' })
  const attributes = await element.evaluate(({ attributes: found }) => [...found].map(({ name, value }) => [name, value]))
  expect(Object.fromEntries(attributes)).toEqual({
    ...{ otp: 'own', playbackinfo: 'info', autoplay: 'true', cclanguage: 'de' },
    style: 'display: block; width: 100%; height: 100%;',
  })
})

/** As at the end of a video of which a third was watched in another session: it pauses, then it has ended. */
const ENDING = `(() => {
  const video = Object.assign(new EventTarget(), { duration: 60, currentTime: 60 })
  setTimeout(() => ['pause', 'ended'].forEach((type) => video.dispatchEvent(new Event(type))))
  return Promise.resolve({ video, api: { getTotalCovered: async () => 40 } })
})()`

test('V34: at the end of a lesson whose first part was watched earlier, the page asks whether it is completed', async () => {
  const { asked } = await openLesson({}, ENDING, true)
  await expect.poll(() => asked).toEqual(['reelgate_otp', 'reelgate_completed'])
})
