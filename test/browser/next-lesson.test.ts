import { afterAll, expect, test } from 'vitest'
import { LANGUAGES } from '../../web/languages/languages.ts'
import { sampleOf } from '../sample.ts'
import { judgeByAxe } from './axe.ts'
import { judgeCard } from './engines/next-lesson.ts'
import { lookAtPlayer, openTab } from './player.ts'
import { startSite } from './site.ts'
import { startWithSmallVideo } from './videos.ts'

// The card that leads to the next lesson, in a page of another site.

const shared = startWithSmallVideo()
const site = startSite()
afterAll(() => site.close())

const HOSTILE = 'Lesson 2 <img src=x onerror=alert(1)>'

/** A page with the element, whose script gives OTPs for what the player asks for. @param next of its attribute; undefined: none */
async function openLesson(next: string | undefined, attributes = '', playNext = 'Play the next lesson') {
  const { reelgate, chromium } = shared
  const otp = await reelgate.owner.issueOtp(reelgate.videoId)
  const page = await openTab(await chromium.newContext())
  await page.goto(
    site.put(`<script src="${reelgate.url}/v2/player.js"></script>
      <reelgate-player otp="${otp}" t="45" ${next === undefined ? '' : `next="${next}"`} ${attributes}></reelgate-player>
      <script>
      window.asked = []
      document.querySelector('reelgate-player').addEventListener('nextLesson', async ({ detail, target }) => {
        window.asked.push(detail)
        if (window.otp) (await target.getPlayer()).api.loadVideo({ otp: window.otp })
      })
      </script>`),
  )
  await expect.poll(() => page.frames().length).toBe(2)
  const player = lookAtPlayer(page, page.frames().at(1))
  await player.shows('ready')
  const { frame } = player
  const card = frame.locator('.next-lesson')
  return { page, player, frame, card, play: card.getByRole('button', { name: playNext }) }
}

const toTheEnd = "document.querySelector('reelgate-player').getPlayer().then(({ video }) => { video.currentTime = 52 })"

test('V30: near the end a card with the title as text offers the next lesson of the list, and the page gives its OTP; all by keyboard', async () => {
  const { owner, videoId } = shared.reelgate
  const { videoId: second } = await owner.credentials(HOSTILE)
  const { page, player, frame, card, play } = await openLesson(`${'0'.repeat(32)} ${videoId},${second} x`)
  expect(await card.isHidden()).toBe(true)
  await player.play()
  await page.evaluate(toTheEnd)
  await play.waitFor()
  await player.keepPicture('next-lesson')
  expect(await card.getByRole('status').textContent()).toBe(`Next lesson ${HOSTILE}`)
  expect(await frame.locator('.next-lesson img').count()).toBe(0) // it has no poster yet
  await page.evaluate(`window.otp = '${await owner.issueOtp(second)}'`)
  await frame.locator('media-controller').focus()
  for (let tabs = 0; tabs < 20 && !(await play.evaluate((element) => element.matches(':focus'))); tabs++)
    await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await player.shows('waiting') // it has no file: it is being prepared
  expect(await page.evaluate('window.asked')).toEqual([second])
  expect(frame.url()).toContain('next=')
  expect(player.complaints.filter((complaint) => !complaint.includes('409') && !complaint.includes('425'))).toEqual([])
})

test('the card goes when the viewer seeks back, and a closed one does not return', async () => {
  const { videoId: second } = await shared.reelgate.owner.credentials('Lesson 2')
  const { page, player, card, play } = await openLesson(second)
  await player.play()
  await page.evaluate(toTheEnd)
  await play.waitFor()
  await page.evaluate(toTheEnd.replace('52', '10'))
  await card.waitFor({ state: 'hidden' })
  await page.evaluate(toTheEnd)
  await card.getByRole('button', { name: 'Close' }).click()
  expect(await card.count()).toBe(0)
  expect(await page.evaluate('window.asked')).toEqual([])
})

test.each(sampleOf('languages of the card', Object.keys(LANGUAGES), 1))(
  'V32: in %s, in a frame of 320 pixels, the whole card shows above the controls, and axe finds no fault',
  async (code) => {
    const { videoId: second } = await shared.reelgate.owner.credentials(HOSTILE)
    const { messages } = (await LANGUAGES[code]?.())?.LANGUAGE ?? {}
    const small = `style="display: block; width: 320px" lang="${code}"`
    const { page, player, frame, play } = await openLesson(second, small, messages?.['play-next'])
    await player.play()
    await page.evaluate(toTheEnd)
    await play.waitFor()
    await player.keepPicture(`next-lesson-${code}`)
    expect(await frame.evaluate(judgeCard)).toEqual([])
    const faults = await judgeByAxe(frame)
    expect(faults.filter((fault) => !fault.startsWith('page-has-heading-one'))).toEqual([]) // a frame is no page
  },
)

test.each([
  ['no list', undefined, ''],
  ['the last lesson of the list', 'LAST', ''],
  ['a video that begins again', 'FIRST', 'loop="true"'],
])('V31: %s has no card, and nothing of one is loaded', async (_what, list, attributes) => {
  const { videoId } = shared.reelgate
  const next = list?.replace('LAST', `${'1'.repeat(32)} ${videoId}`).replace('FIRST', `${videoId} ${'1'.repeat(32)}`)
  const { page, player, card } = await openLesson(next, attributes)
  await player.play()
  await page.evaluate(toTheEnd)
  await player.playsPast(53)
  expect(await card.count()).toBe(0)
})
