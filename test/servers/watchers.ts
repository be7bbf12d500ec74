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
  /** By what was asked for: how long the one waited who waited longest since the last time, from the first try to what it asked for. */
  takeLongestWaitsMs(): Record<string, number>
  stop(): Promise<void>
}

type Waiting = { what: string; sinceMs: number; last: string }

/** A player asks every few seconds; these ask more often, so that something is always on its way. */
const BETWEEN_MS = 50
const HANGS_MS = 30_000
/** So many begin concurrently. */
const BATCH = 20

export async function startWatchers(
  url: string,
  owner: Owner,
  videoId: string,
  count: number,
  { betweenMs = BETWEEN_MS } = {},
): Promise<Watchers> {
  const odd: string[] = []
  const viewers: Viewer[] = []
  while (viewers.length < count) {
    const numbers = Array.from({ length: Math.min(BATCH, count - viewers.length) }, (_, n) => viewers.length + n)
    viewers.push(...(await Promise.all(numbers.map(begin))))
  }
  const done = viewers.map(() => 0)
  const waits = new Map<string, number>()
  /** Of each viewer: what it waits for, since when, and what its last try came to. */
  const waiting = new Map<number, Waiting>()
  let isStopping = false

  async function begin(n: number): Promise<Viewer> {
    const viewer = createViewer(url)
    // A busy machine may not answer in the time that a proxy waits; what is sent to a second server then finds its proof used.
    const redeem = async () => (await viewer.redeem(await owner.issueOtp(videoId, { userId: `watcher-${n}` }))).status
    await expect.poll(() => redeem().catch(String)).toBe(200)
    return viewer
  }

  /** @returns whether it got what it asked for */
  async function ask(begun: Waiting, send: () => Promise<Response>): Promise<boolean> {
    const { what } = begun
    try {
      const answer = await send()
      const bytes = Buffer.from(await answer.arrayBuffer())
      if (answer.ok) return true
      begun.last = `${answer.status} ${bytes.subarray(0, 200)}`
      // 401: it was sent to a second server, or the servers have begun to share; a player signs again.
      if (answer.status === 503) await pause(Number(answer.headers.get('retry-after') ?? 1) * 1000)
      else if (answer.status !== 401) odd.push(`${what}: ${answer.status} ${bytes.subarray(0, 200)}`)
    } catch (error) {
      odd.push(`${what}: ${error}`)
    }
    return false
  }

  const noteWait = ({ what, sinceMs }: Waiting) =>
    waits.set(what, Math.max(waits.get(what) ?? 0, Math.round(performance.now() - sinceMs)))

  async function watch(viewer: Viewer, n: number): Promise<void> {
    let segment = ''
    const find = async () => {
      segment = readMediaPlaylist(await viewer.playlist('1')).segments[0]?.uri ?? ''
      return segment
    }
    await expect.poll(find).not.toBe('')
    const href = new URL(segment, `${url}/play/${viewer.state.session}/playlist/`).href
    const beat = JSON.stringify({ state: 'playing', positionS: 1, rate: 1, bufferS: 4 })
    const sends: [string, () => Promise<Response>][] = [
      ['key', () => viewer.key(0)],
      ['segment', () => fetch(href, { signal: AbortSignal.timeout(HANGS_MS) })],
      ['beat', () => viewer.call('beat', undefined, beat)],
    ]
    // Not all in the same moment.
    await pause((betweenMs * n) / count)
    while (!isStopping) {
      for (const [what, send] of sends) {
        const begun: Waiting = { what, sinceMs: performance.now(), last: '' }
        waiting.set(n, begun)
        while (!isStopping && !(await ask(begun, send)));
        waiting.delete(n)
        if (isStopping) return
        noteWait(begun)
        done[n] = (done[n] ?? 0) + 1
        await pause(betweenMs)
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
      const describe = (n: number) => {
        const { what, last, sinceMs } = waiting.get(n) ?? { what: 'nothing', last: '', sinceMs: performance.now() }
        return `${n} waits for ${what} for ${Math.round(performance.now() - sinceMs)} ms: ${last}`
      }
      const behind = () => [...odd.slice(-3), ...done.flatMap((count, n) => (count < (wanted[n] ?? 0) ? [describe(n)] : []))]
      await expect.poll(behind, { timeout: 60_000 }).toEqual([])
    },
    takeLongestWaitsMs() {
      for (const begun of waiting.values()) noteWait(begun)
      const taken = Object.fromEntries(waits)
      waits.clear()
      return taken
    },
  }
}
