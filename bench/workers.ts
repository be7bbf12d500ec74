import { join } from 'node:path'
import { dataPaths } from '../src/config/data-paths.ts'
import { sendCommand } from '../src/control/socket.ts'
import { checkResult } from '../src/encode/check/check-result.ts'
import { videoSegmentCount } from '../src/encode/plan.ts'
import { createOwner } from '../test/client.ts'
import { type Installed, untilEncoded } from '../test/data-folder.ts'
import { encodeResult } from '../test/encode/check/results.ts'
import { openVideo, withoutBubblewrap } from '../test/encode/videos.ts'
import { measureInterleaved, timeMs } from './interleaved.ts'
import { processorMs } from './processor-time.ts'
import type { Measured, Row, Scope } from './row.ts'
import { firstApiKey, type ListeningProcess, ROOT, startListening, startService } from './service.ts'
import { make48SVideo, makeLongVideo, makePhoneVideo } from './videos.ts'

const LESSON_MINUTES = 5
const PHONE_S = 12

export const WORKER_ROWS: readonly Row[] = [
  {
    name: 'ladder-worker',
    what: 'the video of `ladder` with a worker next to the server, which checks what that makes, on the same cores; peer: the server alone',
    unit: 's',
    aim: { ratioAtMost: 1.3 },
    prepare: make48SVideo,
    measure: async (scope) => {
      const video = await make48SVideo()
      const service = await openService(scope, {})
      await service.encode(video, []) // warm up
      return measureInterleaved(
        2,
        () => service.encode(video, [{ name: 'next' }]),
        () => service.encode(video, []),
      )
    },
  },
  workersRow('workers', { options: [], aim: { ratioAtMost: 0.71 } }),
  workersRow('workers-trusted', { options: ['trusted'], aim: { ratioAtMost: 0.59 } }),
  {
    name: 'check-share',
    what: `processor time of the check of ${PHONE_S} s of a phone's 1080p of 13 Mbit/s in four rungs; peer: of their encode`,
    unit: 's',
    aim: { ratioAtMost: 0.3 },
    prepare: () => makePhoneVideo(PHONE_S),
    measure: measureCheckShare,
  },
]

function workersRow(name: string, { options, aim }: { options: readonly 'trusted'[]; aim: Row['aim'] }): Row {
  return {
    name,
    what: `${LESSON_MINUTES} minutes of 480 × 352 by two workers${options.map((option) => `, ${option}`).join('')}, on a core each, for a server that encodes nothing; peer: by one of them`,
    unit: 's',
    aim,
    prepare: () => makeLongVideo(LESSON_MINUTES),
    measure: async (scope) => {
      const video = await makeLongVideo(LESSON_MINUTES)
      const service = await openService(scope, { REELGATE_ENCODERS: '0' })
      const isTrusted = options.includes('trusted')
      const [one, two] = [0, 1].map((core) => ({ name: `core-${core}`, core, isTrusted }))
      if (!one || !two) throw new Error('two workers are compared with one')
      return measureInterleaved(
        1,
        () => service.encode(video, [one, two]),
        () => service.encode(video, [two]),
      )
    },
  }
}

type Worker = { name: string; core?: number; isTrusted?: boolean }

/** A service that encodes one video after the other, each with workers of its own. */
async function openService(scope: Scope, env: Record<string, string>) {
  const dataDir = join(scope.folder, 'data')
  const installed: Installed = { dataDir, masterKeyFile: `${dataDir}.key` }
  const service = await startService(scope, dataDir, env)
  const owner = createOwner(service.url, firstApiKey(service))
  const { controlSocket } = dataPaths(dataDir)

  async function startWorker({ name, core, isTrusted = false }: Worker): Promise<ListeningProcess> {
    const { token } = (await sendCommand(controlSocket, 'worker add', { name, trusted: isTrusted })) as { token: string }
    const pinned = core === undefined ? [] : ['taskset', '--cpu-list', String(core)]
    const args = ['worker', '--server', service.url, '--cache', join(scope.folder, name), '--jobs', '1']
    const settings = { REELGATE_WORKER_TOKEN: token, REELGATE_SANDBOX: 'weak', REELGATE_LOG_LEVEL: 'info' }
    // It prints the server's address as soon as it waits for chunks.
    return startListening(scope, [...pinned, process.execPath, join(ROOT, 'bin/main.js'), ...args], settings)
  }

  /** @returns the seconds from the upload's response to the last segment */
  async function encode(video: string, workers: readonly Worker[]): Promise<number> {
    const started = await Promise.all(workers.map(startWorker))
    const videoId = await owner.upload('A video', video)
    const ms = await timeMs(() => untilEncoded(installed, videoId))
    for (const { kill } of started) await kill()
    for (const { name } of workers) await sendCommand(controlSocket, 'worker remove', { name })
    await owner.delete([videoId])
    return ms / 1000
  }

  return { encode }
}

async function measureCheckShare(scope: Scope): Promise<Measured> {
  const { plan, source, sandbox } = await openVideo(await makePhoneVideo(PHONE_S), scope.folder)
  if (!plan.videoTrack) throw new Error('the video has no video track')
  const segmentCount = videoSegmentCount(plan.videoTrack)
  // bubblewrap leaves without waiting for what it started, whose processor time nothing then has.
  const video = { plan, source, sandbox: withoutBubblewrap(sandbox) }
  const chunk = { kind: 'video', firstSegment: 0, segmentCount, decodesFromStart: true } as const
  const encode = () => encodeResult(video, chunk)
  let result = await encode()
  return measureInterleaved(
    2,
    () =>
      inProcessorS(async () => {
        const verdict = await checkResult(result)
        if (!verdict.ok) throw new Error(verdict.reason)
      }),
    () =>
      inProcessorS(async () => {
        result = await encode()
      }),
  )
}

/** What this process and those that it starts use meanwhile. */
async function inProcessorS(work: () => Promise<unknown>): Promise<number> {
  const before = processorMs([process.pid])
  await work()
  return (processorMs([process.pid]) - before) / 1000
}
