import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { dataPaths } from '../../src/config/data-paths.ts'
import { sendCommand } from '../../src/control/socket.ts'
import type { ChunkKind } from '../../src/encode/chunk-plan.ts'
import { encoderFingerprint } from '../../src/encode/encoder.ts'
import { openSandbox } from '../../src/sandbox/bubblewrap.ts'
import { runWorker } from '../../src/workers/client/run-worker.ts'
import { HardwareUnusable, type TriedHardware, tryEncoder } from '../../src/workers/client/try-hardware.ts'
import { blobOf, listSegments, untilFinished } from '../data-folder.ts'
import { openDefaultSandbox } from '../encode/videos.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { changeRows, readRows } from '../rows.ts'
import { isLong } from '../seeded-random.ts'
import { makeVideo } from '../videos.ts'
import { CARD, lost, tooLarge } from './stand-in-hardware.ts'
import { addWorker } from './worker-process.ts'

// A server without encoders, and workers whose ffmpeg has another version: in truth the same one, that calls itself otherwise.

const VIDEO = { seconds: 9 }

let reelgate: Reelgate & { remove(): Promise<void> }

beforeAll(async () => {
  reelgate = await startSharedReelgate({ env: { REELGATE_ENCODERS: '0' } })
})
afterAll(() => reelgate.remove())

/** A worker in this process. @returns ends it */
async function startOther(
  name: string,
  {
    ffmpegVersion,
    hardware,
    kinds = ['video', 'audio'],
  }: { ffmpegVersion?: string; hardware?: TriedHardware; kinds?: ChunkKind[] } = {},
): Promise<{ encoder: string; running: Promise<void>; end(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-worker-'))
  const sandbox = await openSandbox({ sandbox: 'weak' })
  if (ffmpegVersion !== undefined) sandbox.ffmpegVersion = ffmpegVersion
  const ending = new AbortController()
  const running = runWorker({
    ...{ server: reelgate.url, mayPutAt: () => true, token: await addWorker(reelgate, name), jobs: 2, kinds },
    ...{ cacheFolder: join(folder, 'cache'), cacheBytes: 2 ** 30, sandbox, hardware, log: pino({ level: 'silent' }) },
    ...{ stopping: ending.signal, ending: ending.signal },
  })
  running.catch(() => undefined)
  async function end() {
    ending.abort()
    await running.catch(() => undefined)
    await rm(folder, { recursive: true, force: true })
  }
  onTestFinished(async () => {
    await end()
    changeRows(reelgate, 'update worker set drained = 1 where name = ?', name) // the next video is no longer for it
  })
  return { encoder: hardware?.fingerprint ?? encoderFingerprint(sandbox), running, end }
}

const generationsOf = (videoId: string) =>
  readRows<{ number: number; encoder: string }>(reelgate, 'select number, encoder from generation where video_id = ?', videoId)
const hasSeen = (name: string) =>
  readRows(reelgate, 'select 1 from worker where name = ? and last_seen_at_s is not null', name).length === 1

test('J32, J40: a video is encoded and repaired by the encoder that is there, and not by one that leaves its sound to others', async () => {
  await startOther('pictures', { ffmpegVersion: '98.0', kinds: ['video'] })
  await expect.poll(() => hasSeen('pictures')).toBe(true)
  const other = await startOther('rented', { ffmpegVersion: '99.0' })
  await expect.poll(() => hasSeen('rented')).toBe(true)
  const videoId = await reelgate.owner.upload('Encoded elsewhere', await makeVideo(VIDEO))
  await untilFinished(reelgate, videoId)
  expect(generationsOf(videoId)).toEqual([{ number: 1, encoder: other.encoder }])
  expect((await reelgate.newViewer().redeem(await reelgate.owner.issueOtp(videoId))).playing).toBe(true)

  const { rendition_id, number, file } = listSegments(reelgate, videoId)[1] ?? expect.fail()
  const blob = blobOf(reelgate, 'segments', file)
  const published = await blob.read()
  await blob.remove()
  const problem = 'its file is missing'
  await sendCommand(dataPaths(reelgate.dataDir).controlSocket, 'media checked', {
    damaged: [{ videoId, generation: 1, renditionId: rendition_id, number, problem, mayHaveBeenSent: false }],
    damagedFiles: [],
    intactFiles: [],
  })
  await expect.poll(() => readRows(reelgate, `select 1 from chunk where state != 'done'`)).toEqual([])
  expect(await blob.read()).toEqual(published)
  expect(generationsOf(videoId)).toHaveLength(1)
})

test('J37: a video is encoded by a graphics card, and plays', async () => {
  const tried = await tryEncoder(await openDefaultSandbox(), CARD)
  await startOther('card', { hardware: tried })
  await expect.poll(() => hasSeen('card')).toBe(true)
  const videoId = await reelgate.owner.upload('Encoded on a card', await makeVideo(VIDEO))
  await untilFinished(reelgate, videoId)
  expect(generationsOf(videoId)).toEqual([{ number: 1, encoder: tried.fingerprint }])
  expect((await reelgate.newViewer().redeem(await reelgate.owner.issueOtp(videoId))).playing).toBe(true)
})

async function encodeTooSmall() {
  const tried = await tryEncoder(await openDefaultSandbox(), tooLarge)
  await startOther('large', { hardware: tried })
  await expect.poll(() => hasSeen('large')).toBe(true)
  const videoId = await reelgate.owner.upload('Too small', await makeVideo(VIDEO))
  await untilFinished(reelgate, videoId)
  const [generation] = generationsOf(videoId)
  expect([generation?.number, generation?.encoder === tried.fingerprint]).toEqual([2, false])
}

if (isLong) test('J38: what a card cannot encode the server does, as another generation', encodeTooSmall)

test('J39: a worker whose card is lost ends with the reason', async () => {
  const { running } = await startOther('gone', { hardware: { hardware: lost, fingerprint: 'lost' } })
  await expect.poll(() => hasSeen('gone')).toBe(true)
  await reelgate.owner.upload('Without a card', await makeVideo(VIDEO))
  await expect(running).rejects.toBeInstanceOf(HardwareUnusable)
})

async function beginAgain() {
  const other = await startOther('leased', { ffmpegVersion: '99.0' })
  await expect.poll(() => hasSeen('leased')).toBe(true)
  await other.end()
  const waitingId = await reelgate.owner.upload('Begun again', await makeVideo(VIDEO))
  await expect.poll(() => generationsOf(waitingId)).toEqual([{ number: 1, encoder: other.encoder }])
  const same = await startOther('office')
  await expect.poll(() => hasSeen('office')).toBe(true)
  expect(readRows(reelgate, 'select 1 from segment where video_id = ?', waitingId)).toEqual([])
  changeRows(reelgate, `update worker set last_seen_at_s = last_seen_at_s - 601 where name != 'office'`)
  await untilFinished(reelgate, waitingId)
  expect(generationsOf(waitingId)).toEqual([{ number: 2, encoder: same.encoder }])
}

if (isLong) test('J33: a video is begun again by another encoder once its own was not seen for ten minutes', beginAgain)
