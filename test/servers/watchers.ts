import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished } from 'vitest'
import type { Owner } from '../client.ts'
import { createViewer, readMediaPlaylist, type Viewer } from '../viewer.ts'

/** Viewers who play on, whatever becomes of the servers behind the address. */
export type Watchers = {
  /** Answers that no player gets over. */
  odd: string[]
  /** Resolves when each has got so much more. */
  goOn(requests?: number): Promise<void>
  stop(): Promise<void>
}

/** A player asks every few seconds; these ask more often, so that something is always on its way. */
const BETWEEN_MS = 50
const HANGS_MS = 30_000

export async function startWatchers(url: string, owner: Owner, videoId: string, count: number): Promise<Watchers> {
  const odd: string[] = []
  const viewers = await Promise.all(
    Array.from({ length: count }, async (_, n) => {
      const viewer = createViewer(url)
      expect((await viewer.redeem(await owner.issueOtp(videoId, { userId: `watcher-${n}` }))).status).toBe(200)
      return viewer
    }),
  )
  const done = viewers.map(() => 0)
  let isStopping = false

  /** @returns whether it got what it asked for */
  async function ask(what: string, send: () => Promise<Response>): Promise<boolean> {
    try {
      const answer = await send()
      const bytes = Buffer.from(await answer.arrayBuffer())
      if (answer.ok) return true
      // 401: it was sent to a second server, or the servers have begun to share; a player signs again.
      if (answer.status === 503) await pause(Number(answer.headers.get('retry-after') ?? 1) * 1000)
      else if (answer.status !== 401) odd.push(`${what}: ${answer.status} ${bytes.subarray(0, 200)}`)
    } catch (error) {
      odd.push(`${what}: ${error}`)
    }
    return false
  }

  async function watch(viewer: Viewer, n: number): Promise<void> {
    const { segments } = readMediaPlaylist(await viewer.playlist('1'))
    const [segment] = segments
    const href = new URL(segment?.uri ?? '', `${url}/play/${viewer.state.session}/playlist/`).href
    const beat = JSON.stringify({ state: 'playing', positionS: 1, rate: 1, bufferS: 4 })
    const sends: [string, () => Promise<Response>][] = [
      ['key', () => viewer.key(0)],
      ['segment', () => fetch(href, { signal: AbortSignal.timeout(HANGS_MS) })],
      ['beat', () => viewer.call('beat', undefined, beat)],
    ]
    while (!isStopping) {
      for (const [what, send] of sends) {
        while (!isStopping && !(await ask(what, send)));
        if (isStopping) return
        done[n] = (done[n] ?? 0) + 1
        await pause(BETWEEN_MS)
      }
    }
  }

  const watching = viewers.map(watch)
  const stop = async () => {
    isStopping = true
    await Promise.all(watching)
  }
  onTestFinished(stop)
  return {
    ...{ odd, stop },
    async goOn(requests = 6) {
      const wanted = done.map((count) => count + requests)
      const behind = () => odd.slice(-3).concat(done.some((count, n) => count < (wanted[n] ?? 0)) ? ['they wait'] : [])
      await expect.poll(behind, { timeout: 60_000 }).toEqual([])
    },
  }
}
