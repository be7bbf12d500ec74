import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { makeLanguages, TONES } from '../browser/tones.ts'
import { createOwner } from '../client.ts'
import { newMovableClock } from '../faults/faked-clock.ts'
import { startReelgate } from '../reelgate.ts'
import { sampleOf } from '../sample.ts'
import { newChance } from '../seeded-random.ts'
import { readMediaPlaylist, readNames, type Viewer } from '../viewer.ts'
import { stretchVideo } from './stretched-video.ts'

// A viewer's own program against a real server, written from playback-protocol.md: it requests all keys of a video in three languages,
// each as soon as it may, with as many OTPs as it likes. The server's time is moved, not waited for.

const chance = newChance('a viewer’s own program')

type Attack = {
  minutes: number
  otps: number
  options: { userId?: string; streamLimit?: number }
  atLeastS: number
  /** Each request comes from another /64 of one /48. */
  moves?: boolean
}

const ann = (streamLimit?: number) => ({ userId: 'ann', streamLimit })
const NAMED: Attack[] = [
  ...[1, 2, 6, 20].flatMap((otps) => [ann(), ann(1), ann(2)].map((options) => ({ minutes: 60, otps, options, atLeastS: 1800 }))),
  ...[20, 30, 120].map((minutes) => ({ minutes, otps: 2, options: ann(1), atLeastS: 30 * minutes })),
]
/** All at one address, which earns for three viewers at most. */
const UNNAMED: Attack[] = [20, 60].map((minutes) => ({ minutes, otps: 6, options: {}, atLeastS: 10 * minutes }))
const MOVING: Attack[] = [1, 6].map((otps) => ({ minutes: 60, otps, options: {}, atLeastS: 600, moves: true }))

test.each(sampleOf('programs that ask a server for all keys', [...NAMED, ...UNNAMED, ...MOVING], 1))(
  'P21, P24: $otps OTPs with $options, moving: $moves, get the keys of $minutes minutes in $atLeastS s at the earliest, with pages, restarts and clock steps between',
  async ({ minutes, otps, options, atLeastS, moves = false }) => {
    const program = await startProgram(60 * minutes, options, moves)
    for (let n = 0; n < otps; n++) await program.addSession()
    for (const window of await program.listWindows()) {
      for (let waitS = await program.requestKey(window); waitS !== undefined; waitS = await program.requestKey(window))
        await program.spendTime(waitS)
    }
    expect(program.spentS()).toBeGreaterThan(atLeastS - 1)
  },
)

/** A closed connection for each request: those that are kept open end when time jumps. */
const CLOSE = { Connection: 'close' }
/** As much as a silence of any length earns. */
const LEASE_S = 18

async function startProgram(durationS: number, options: Attack['options'], moves: boolean) {
  const clock = await newMovableClock('time')
  onTestFinished(clock.remove)
  const reelgate = await startReelgate({
    video: await makeLanguages(TONES, 10),
    env: { ...clock.env, REELGATE_TRUSTED_PROXIES: '127.0.0.1' },
  })
  stretchVideo(reelgate, durationS)
  const owner = createOwner(reelgate.url, reelgate.owner.apiKey, CLOSE)
  const viewers: Viewer[] = []
  const beganMs = performance.now()
  let aheadS = 0
  let movedS = 0

  let moveCount = 0
  function move(viewer: Viewer): Viewer {
    const location = (moveCount++ & 0xffff).toString(16)
    if (moves) viewer.state.headers = { ...CLOSE, 'X-Forwarded-For': `2001:db8:1:${location}::1` }
    return viewer
  }

  async function addSession(): Promise<void> {
    const viewer = reelgate.newViewer()
    viewer.state.headers = CLOSE
    await viewer.openPage('', CLOSE)
    const issued = await answered(() => owner.call('POST', `/api/videos/${reelgate.videoId}/otp`, { body: options }))
    const { otp } = (await issued.json()) as { otp: string }
    expect((await answered(() => viewer.redeem(otp))).playing).toBe(true)
    viewers.push(viewer)
  }

  /** @returns undefined when one of the sessions got the key; else in how many seconds the first of them may ask again */
  async function requestKey(window: number): Promise<number | undefined> {
    const waits: number[] = []
    for (const viewer of [...viewers]) {
      const response = await answered(() => move(viewer).key(window))
      if (response.status === 200) {
        viewers.unshift(...viewers.splice(viewers.indexOf(viewer), 1)) // it asks first the next time: it has its stream slot
        return undefined
      }
      const refusal = (await response.json()) as { code: string; waitMs?: number }
      expect(['key-pace', 'stream-limit', 'session-ended']).toContain(refusal.code)
      if (refusal.code === 'session-ended') viewers.splice(viewers.indexOf(viewer), 1) // it was idle for an hour
      waits.push((refusal.waitMs ?? 0) / 1000)
      // With a userId the budget is the same for all of them: the others are not asked each time.
      if (refusal.code === 'key-pace' && options.userId !== undefined && chance.next() < 0.9) break
    }
    if (viewers.length === 0) await addSession()
    return Math.min(...waits)
  }

  const beat = (viewer: Viewer, state: string) =>
    answered(() => move(viewer).call('beat', undefined, JSON.stringify({ state, positionS: 1, rate: 2, bufferS: 5 })))

  async function jump(seconds: number): Promise<void> {
    aheadS += seconds
    await clock.set(aheadS)
    if (seconds > LEASE_S) movedS += LEASE_S
  }

  async function restart(stepS: number): Promise<void> {
    await reelgate.stop()
    await jump(stepS)
    await reelgate.restart()
  }

  /** What it tries besides, and how often at most. */
  const tricks = [
    { left: 20, run: async () => void (await Promise.all(viewers.map((viewer) => beat(viewer, 'playing')))) },
    { left: 20, run: async () => void (await Promise.all(viewers.map((viewer) => beat(viewer, 'stalled')))) },
    { left: 10, run: leaveAll },
    { left: 10, run: openNewPage },
    { left: 3, run: addSession },
    ...sampleOf('steps of the clock at a restart', [0, 3600, -7200], 1).map((stepS) => ({ left: 1, run: () => restart(stepS) })),
    { left: 2, run: () => jump(3000) },
  ]

  async function leaveAll(): Promise<void> {
    for (const viewer of viewers) await answered(() => viewer.call('leave', undefined, '{}'))
  }

  async function openNewPage(): Promise<void> {
    const [viewer] = viewers
    if (!viewer) return
    viewer.newPage()
    expect((await answered(() => viewer.call('page', undefined, '{}'))).status).toBe(200)
  }

  return {
    addSession,
    requestKey,
    /** Of the picture and of each language, in the order of time. */
    async listWindows(): Promise<number[]> {
      const [viewer = expect.fail()] = viewers
      const windows = new Set<number>()
      for (const name of readNames(await viewer.playlist('main')))
        for (const { keyUri } of readMediaPlaylist(await viewer.playlist(name)).segments) windows.add(Number(/\d+$/.exec(keyUri)))
      return [...windows].sort((a, b) => a - b)
    },
    /** Tries something now and then, and lets the time pass. */
    async spendTime(seconds: number): Promise<void> {
      const trick = tricks[Math.floor(chance.between(0, tricks.length))]
      if (trick && trick.left > 0 && chance.next() < 0.5) {
        trick.left--
        await trick.run()
      }
      aheadS += seconds
      movedS += seconds
      await clock.set(aheadS)
    },
    /** How long the program took, by the server's clock, where a long silence counts as the lease that it earns. */
    spentS: () => movedS + (performance.now() - beganMs) / 1000,
  }
}

/**
 * Signed again where the time has moved on since the last nonce, and requested again where its jump has ended the server's connections
 * to PostgreSQL.
 */
async function answered<Answer extends { status: number }>(request: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    const response = await request()
    if (response.status !== 401 && response.status !== 503) return response
    if (response.status === 503) await pause(100)
  }
}
