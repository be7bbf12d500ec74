import { createHash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Reelgate, startSharedReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { newChance, rounds } from '../seeded-random.ts'
import { makeVideo } from '../videos.ts'
import { answerOf, type Outcome } from '../viewer.ts'

let reelgate: Reelgate & { remove(): Promise<void> }
let videoId: string
beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeVideo() })
  videoId = reelgate.videoId
})
afterAll(() => reelgate.remove())

const sessionsOf = (otp: string) =>
  readRows<{ id: string }>(
    reelgate,
    'select id from playback_session where otp_hash = ?',
    createHash('sha256').update(otp).digest(),
  ).map((row) => row.id)

/** Resolves when one of the OTPs has its session in the database; reads it again and again, for the answer must not be first. */
async function untilCommitted(otps: readonly string[]): Promise<void> {
  while (!otps.some((otp) => sessionsOf(otp).length > 0)) await new Promise((resolve) => setImmediate(resolve))
}

// The pauses are the fault, not a wait: the kill falls before, between or after the commits and their answers.
const BROWSERS = 24

describe('O04: a server killed while it redeems has spent each OTP with its session, or not at all', () => {
  const chance = newChance('kills of a server that redeems')
  const moments: [name: string, moment: (otps: readonly string[]) => Promise<void>][] = [
    ['at any moment', () => pause(chance.between(15, 45))],
    ['as soon as the first is on the disk', untilCommitted],
  ]
  test.each(Array.from({ length: rounds(1, 3) }, () => moments).flat())('%s', async (_, moment) => {
    const viewers = Array.from({ length: BROWSERS }, () => reelgate.newViewer())
    const otps = await Promise.all(viewers.map(() => reelgate.owner.issueOtp(videoId)))
    await Promise.all(viewers.map((viewer) => viewer.openPage()))
    const redeems = viewers.map((viewer, i) => viewer.redeem(otps[i] ?? '').catch((): Outcome | undefined => undefined))
    await moment(otps)
    await reelgate.kill()
    const answers = await Promise.all(redeems)
    await reelgate.restart()

    const committed = otps.map(sessionsOf)
    for (const [i, answer] of answers.entries()) {
      expect(committed[i]?.length).toBeLessThanOrEqual(1)
      if (answer?.playing) expect(committed[i]).toEqual([answer.body.session])
    }
    // The player asks again with what it has: the nonce is of the start before, so it signs again with the one it gets.
    for (const [i, viewer] of viewers.entries()) {
      const otp = otps[i] ?? ''
      expect(await viewer.redeem(otp)).toMatchObject({ status: 401, body: { code: 'proof-stale' } })
      const again = await viewer.redeem(otp)
      expect(again.playing).toBe(true)
      expect(sessionsOf(otp)).toEqual([again.body.session])
      if (committed[i]?.[0]) expect(again.body.session).toBe(committed[i][0])
    }
    expect((await viewers[0]?.key(0))?.status).toBe(200)
    expect((await reelgate.newViewer().redeem(otps[0] ?? '')).body.code).toBe('otp-used')
  })
})

test('a session survives a restart; proofs of before do not', async () => {
  const viewer = reelgate.newViewer()
  await viewer.redeem(await reelgate.owner.issueOtp(videoId))
  const unused = viewer.proof({ operation: 'key', session: viewer.state.session, argument: '0' })
  expect(await reelgate.stop()).toBe(0)
  await reelgate.restart()
  expect(await answerOf(viewer.send('GET', `/play/${viewer.state.session}/key/0`, unused))).toEqual([401, 'proof-stale'])
  expect((await viewer.key(0)).status).toBe(200)
})
