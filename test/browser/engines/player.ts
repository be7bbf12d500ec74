import { setTimeout as pause } from 'node:timers/promises'
import { onTestFinished } from 'vitest'
import { readState, readVideo, type Watched } from '../in-page.ts'
import { keepPicture } from '../pictures.ts'
import type { Point, Tab, Where } from './engine.ts'
import { findCentre, readText } from './in-page.ts'

export type EnginePlayer = ReturnType<typeof lookAt>

/** What a viewer sees of the player in a tab, or in the frame of it, and does with it, in every engine. */
export function lookAt(tab: Tab, where: Where = 'page') {
  const video = (): Promise<Watched> => tab.run(where, readVideo, null)
  const state = () => tab.run(where, readState, null)
  onTestFinished(async ({ task }) => {
    if (task.result?.state !== 'fail') return
    console.error(await Promise.allSettled([state(), video()]))
    await keepPicture(`failed-${task.name}`, () => tab.screenshot())
  })

  /** @returns the middle of the first element that is visible, and has this text, if any is given */
  async function find(selector: string, text?: string): Promise<Point> {
    for (;;) {
      const point = await tab.run(where, findCentre, { selector, text })
      if (point) return point
      await pause(100)
    }
  }

  async function until(isReached: (watched: Watched) => boolean): Promise<Watched> {
    for (;;) {
      const watched = await video()
      if (isReached(watched)) return watched
      await pause(100)
    }
  }

  async function click(selector: string, text?: string): Promise<void> {
    await tab.click(where, await find(selector, text))
  }

  return {
    tab,
    video,
    state,
    until,
    find,
    run: <Argument, Result>(script: (argument: Argument) => Result | Promise<Result>, argument: Argument) =>
      tab.run(where, script, argument),
    /** Waits until the player is in this state, such as `refused` with the code `otp-used`. */
    async shows(wanted: string, code?: string): Promise<void> {
      for (;;) {
        const now = await state()
        if (now.state === wanted && (code === undefined || now.code === code)) return
        await pause(100)
      }
    },
    /** The sentence on the screen. */
    sentence: () => tab.run(where, readText, '.panel .sentence'),
    click,
    async pause(): Promise<void> {
      await click('media-play-button')
      await until(({ paused, seeking }) => paused && !seeking)
    },
    /** The control bar hides while nothing moves. */
    moveMouse: (to: Point) => tab.moveMouse(where, to),
    /** Waits until the video has been shown up to this time, and continues. */
    playsPast: (timeS: number) => until((now) => now.timeS > timeS && !now.paused && !now.seeking),
    /** A screenshot for a test that looks at its pixels; kept, too. */
    async screenshot(name: string): Promise<Buffer> {
      const png = await tab.screenshot()
      await keepPicture(name, async () => png)
      return png
    },
    keepPicture: (name: string) => keepPicture(name, () => tab.screenshot()),
  }
}
