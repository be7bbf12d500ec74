import { expect } from 'vitest'
import { LANGUAGES } from '../../../web/languages/languages.ts'
import type { SampledTest } from '../../sample.ts'
import { readText } from './in-page.ts'
import type { OtherPagesSetup } from './other-pages.ts'
import { lookAt } from './player.ts'

/** The card of the next lesson in a frame as small as a phone's, with texts from right to left. */
export function testNextLesson(name: string, test: SampledTest, location: () => OtherPagesSetup) {
  test('V32: in Arabic, in a frame of 320 pixels, the card of the next lesson fits, and leads to it', async () => {
    const { tab, putPage, reelgate } = location()
    const { url, owner, videoId } = reelgate
    const { videoId: second } = await owner.credentials('Lesson 2')
    const otp = await owner.issueOtp(videoId, { forcedBitrate: 200 })
    await tab.goto(
      putPage(
        `<script src="${url}/v2/player.js"></script>
        <reelgate-player style="display: block; width: 320px" lang="ar" otp="${otp}" next="${videoId} ${second}"></reelgate-player>
        <script>document.querySelector('reelgate-player').addEventListener('nextLesson', async ({ detail, target }) => {
          document.title = detail
          const { api } = await target.getPlayer()
          api.loadVideo({ otp: '${await owner.issueOtp(second)}' })
        })</script>`,
        'localhost',
      ),
    )
    const player = lookAt(tab, 'frame')
    const { LANGUAGE } = (await LANGUAGES.ar?.()) ?? {}
    await player.shows('ready')
    await player.click('.big-play')
    await player.find('.next-lesson .play-next', LANGUAGE?.messages['play-next'])
    await player.keepPicture(`${name}-next-lesson`)
    expect(await player.run(judgeCard, null)).toEqual([])
    expect(await player.run(readText, '.next-lesson p')).toBe(`${LANGUAGE?.messages['next-lesson']} Lesson 2`)
    await player.click('.next-lesson .play-next')
    await player.shows('waiting') // it has no file
    expect(await tab.run('page', readTitle, null)).toBe(second)
  })
}

type Box = { left: number; right: number; top: number; bottom: number; height: number }
type Measured = {
  readonly className: string
  readonly scrollWidth: number
  readonly clientWidth: number
  getBoundingClientRect(): Box
}
declare const document: {
  readonly title: string
  querySelector(name: string): Measured
  querySelectorAll(name: string): Iterable<Measured>
}
declare const innerWidth: number

const readTitle = () => document.title

/** Runs in the frame. @returns what of the card is outside, cut off, too small for a finger or over the controls */
export function judgeCard(): string[] {
  const card = document.querySelector('.next-lesson').getBoundingClientRect()
  const faults: string[] = []
  if (card.left < 0 || card.right > innerWidth || card.top < 0) faults.push('outside')
  if (card.bottom > document.querySelector('media-control-bar').getBoundingClientRect().top) faults.push('over the controls')
  for (const button of document.querySelectorAll('.next-lesson button')) {
    const { height, left, right } = button.getBoundingClientRect()
    const isCut = button.scrollWidth > button.clientWidth || left < card.left || right > card.right
    if (isCut || height < 44) faults.push(button.className)
  }
  return faults
}
