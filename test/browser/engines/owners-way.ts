import { readFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { signIn } from '../../console/person.ts'
import { startSharedReelgate } from '../../in-process.ts'
import { makeVideo } from '../../videos.ts'
import type { Engine, Tab } from './engine.ts'
import { lookAt } from './player.ts'

const PASSWORD = 'a lamp in the projection room'

/** An owner's way through the console, in engines besides Chromium: signs in by password, uploads a video, and plays it. */
export function testOwnersWay(name: string, start: () => Promise<Engine>) {
  let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
  let engine: Engine

  beforeAll(async () => {
    reelgate = await startSharedReelgate()
    await (await signIn(reelgate)).get('PUT', '/sign-in/password', { password: PASSWORD })
    engine = await start()
    console.log(`${name} ${engine.version}`)
  })
  afterAll(async () => {
    await engine?.close()
    await reelgate?.remove()
  })

  test('signs in by password, uploads a video, and plays it in the console', async () => {
    const tab = await engine.openProfile()
    await tab.goto(`${reelgate.url.replace('127.0.0.1', 'localhost')}/console/welcome`)
    await until(tab, 'input[autocomplete="username"]')
    await tab.run('page', fillIn, { 'input[autocomplete="username"]': 'owner', 'input[type=password]': PASSWORD })
    await tab.run('page', submitForm, null)
    await until(tab, 'input[type=file]')
    const file = (await readFile(await makeVideo({ size: '320x180' }))).toString('base64')
    await tab.run('page', chooseFile, { name: 'Lesson.mp4', base64: file })
    await until(tab, 'iframe')

    const player = lookAt(tab, 'frame')
    await player.shows('ready')
    await tab.run('page', scrollToFrame, null) // from under the bar at the bottom of a small screen
    await player.click('.big-play')
    expect((await player.playsPast(0.5)).timeS).toBeGreaterThan(0.5)
  })
}

/** Waits until the page has an element. */
async function until(tab: Tab, selector: string): Promise<void> {
  while (!(await tab.run('page', hasElement, selector))) await pause(50)
}

// Run in the page.

function hasElement(selector: string): boolean {
  return document.querySelector(selector) !== null
}

/** As typing does: React reads the value from the event. */
function fillIn(values: Record<string, string>): void {
  const { set } = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value') ?? {}
  for (const [selector, value] of Object.entries(values)) {
    const input = document.querySelector(selector)
    set?.call(input, value)
    input?.dispatchEvent(new Event('input', { bubbles: true }))
  }
}

function submitForm(): void {
  document.querySelector('form')?.requestSubmit()
}

function scrollToFrame(): void {
  document.querySelector('iframe')?.scrollIntoView({ block: 'center', behavior: 'instant' })
}

function chooseFile({ name, base64 }: { name: string; base64: string }): void {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))
  const chosen = new DataTransfer()
  chosen.items.add(new File([bytes], name, { type: 'video/mp4' }))
  const input = document.querySelector('input[type=file]')
  if (!input) throw new Error('There is no place for a file')
  input.files = chosen.files
  input.dispatchEvent(new Event('change', { bubbles: true }))
}

type PageElement = {
  files: unknown
  dispatchEvent(event: Event): boolean
  requestSubmit(): void
  scrollIntoView(options: object): void
}
declare const document: { querySelector(selector: string): PageElement | null }
declare const HTMLInputElement: { prototype: object }
declare class DataTransfer {
  readonly items: { add(file: File): void }
  readonly files: unknown
}
