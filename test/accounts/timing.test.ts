import { describe, expect, test } from 'vitest'
import { startReelgate } from '../in-process.ts'

// What the clock could tell a stranger.

/** By construction nothing: a video is looked for by id and account in one statement, a key by its SHA-256. These measure it. */
if (process.env.REELGATE_LONG === '1') describe('L04, K13: over ten thousand answers each', measure)

function measure() {
  const SAMPLES = 10_000

  /** The medians of two kinds of request, asked in turns so that whatever slows the machine slows both. */
  async function mediansOf(...kinds: [() => Promise<Response>, () => Promise<Response>]): Promise<[number, number]> {
    const takenMs: [number[], number[]] = [[], []]
    for (let sample = 0; sample < SAMPLES; sample++) {
      for (const at of sample % 2 ? ([0, 1] as const) : ([1, 0] as const)) {
        const begunMs = performance.now()
        await (await kinds[at]()).arrayBuffer()
        takenMs[at].push(performance.now() - begunMs)
      }
    }
    const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0
    return [median(takenMs[0]), median(takenMs[1])]
  }

  const TIMEOUT_MS = 600_000

  test(
    'another owner’s video and one that never was take equally long',
    async () => {
      const reelgate = await startReelgate()
      const { videoId } = await (await reelgate.newOwner('Ben')).credentials('Ben’s video')
      const [foreign, missing] = await mediansOf(
        () => reelgate.owner.call('GET', `/api/videos/${videoId}`),
        () => reelgate.owner.call('GET', `/api/videos/${'0'.repeat(32)}`),
      )
      expect(Math.abs(foreign - missing) / missing).toBeLessThan(0.1)
    },
    TIMEOUT_MS,
  )

  test(
    'a key that begins as a true one and a key that is all wrong take equally long',
    async () => {
      const reelgate = await startReelgate()
      const { apiKey } = reelgate.owner
      const ask = (secret: string) => fetch(`${reelgate.url}/api/videos`, { headers: { Authorization: `Apisecret ${secret}` } })
      const [near, far] = await mediansOf(
        () => ask(apiKey.slice(0, 63) + (apiKey.endsWith('a') ? 'b' : 'a')),
        () => ask('x'.repeat(64)),
      )
      expect(Math.abs(near - far) / far).toBeLessThan(0.1)
    },
    TIMEOUT_MS,
  )
}

test('L04, K13: by construction: nothing but the SHA-256 of a key, and no part of its text, is what keys are looked for by', async () => {
  const reelgate = await startReelgate()
  const { stdout } = await reelgate.cli('account', 'list', '--json')
  expect(stdout).not.toContain(reelgate.owner.apiKey)
  const { apiKey } = reelgate.owner
  const answers = new Set<string>()
  for (const length of [1, 8, 32, 63]) {
    const near = apiKey.slice(0, length) + [...apiKey.slice(length)].map((letter) => (letter === 'x' ? 'y' : 'x')).join('')
    const response = await fetch(`${reelgate.url}/api/videos`, { headers: { Authorization: `Apisecret ${near}` } })
    answers.add(`${response.status} ${(await response.text()).replace(/"requestId":"[^"]+"/, '')}`)
  }
  expect([...answers]).toHaveLength(1)
})
