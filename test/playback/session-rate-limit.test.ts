import { afterAll, beforeAll, expect, test } from 'vitest'
import { slowTime } from '../faults/faked-clock.ts'
import { type Reelgate, startSharedReelgate } from '../reelgate.ts'
import { makeVideo } from '../videos.ts'
import { answerOf, type Viewer } from '../viewer.ts'

// A session that sends proofs faster than any player: playback-protocol.md, section 3, limits.

let reelgate: Reelgate & { remove(): Promise<void> }
let videoId: string
beforeAll(async () => {
  // The limits as an owner has them who set none. Time passes slowly: on a busy machine three hundred requests take many seconds.
  reelgate = await startSharedReelgate({ env: { REELGATE_LIMITS: '{}', ...slowTime() }, video: await makeVideo() })
  videoId = reelgate.videoId
})
afterAll(() => reelgate?.remove())

async function newPlayingViewer(): Promise<Viewer> {
  const viewer = reelgate.newViewer()
  expect((await viewer.redeem(await reelgate.owner.issueOtp(videoId, { userId: 'hasty-ann' }))).playing).toBe(true)
  return viewer
}

/** Asks as a player does: a proof that came too late among its like is signed again. */
async function ask(viewer: Viewer): Promise<(number | string)[]> {
  const said = await answerOf(viewer.key(0))
  return said[1] === 'proof-replayed' ? answerOf(viewer.key(0)) : said
}

test('P10: fifty concurrent key requests are answered: a player may have that many after a stall', async () => {
  const viewer = await newPlayingViewer()
  const answers = await Promise.all(Array.from({ length: 50 }, () => ask(viewer)))
  expect(new Set(answers.map(String))).toEqual(new Set(['200']))
})

test('P10: of three hundred concurrent requests most get slow-down, the log says so once, and others are not affected', async () => {
  const [hasty, neighbour] = [await newPlayingViewer(), await newPlayingViewer()]
  const flood = Promise.all(
    Array.from({ length: 300 }, async () => {
      const answer = await hasty.key(0)
      return { retryAfter: answer.headers.get('retry-after'), said: await answerOf(answer) }
    }),
  )
  const ofNeighbour = await Promise.all(Array.from({ length: 10 }, () => ask(neighbour)))
  const answers = await flood

  const given = answers.filter(({ said }) => said[0] === 200)
  const slowed = answers.filter(({ said }) => said[0] === 429)
  expect(given.length).toBeLessThan(100) // 60 immediately, and 20 for each second of the server's
  expect(slowed.length).toBeGreaterThan(100)
  for (const { said, retryAfter } of slowed) expect([...said, retryAfter]).toEqual([429, 'slow-down', '1'])
  for (const { said } of answers) expect([200, 401, 429]).toContain(said[0])
  for (const said of ofNeighbour) expect(said).toEqual([200])

  // It waits as requested, and plays on: nothing was ended.
  await expect.poll(() => ask(hasty), { interval: 1000 }).toEqual([200])
  const warnings = () =>
    reelgate
      .output()
      .split('\n')
      .filter((line) => line.includes('too many proofs from one session'))
  await expect.poll(() => warnings().length).toBe(1)
  expect(JSON.parse(warnings()[0] ?? '')).toMatchObject({ level: 40, videoId, userId: 'hasty-ann' })
  expect(reelgate.output()).not.toContain(hasty.state.session)
})
