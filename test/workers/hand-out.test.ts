import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import type { WorkerRow } from '../../src/db/tables.ts'
import { encoderFingerprint } from '../../src/encode/encoder.ts'
import type { Plan } from '../../src/encode/plan.ts'
import type { RemoteEncoder } from '../../src/encode/remote-encoder.ts'
import { blobFolder } from '../../src/storage/folder.ts'
import { startHandOut } from '../../src/workers/hand-out.ts'
import { addWorker, authenticateWorker } from '../../src/workers/worker.ts'
import { openOwnDatabase } from '../db/database.ts'
import { newFolder, openDefaultSandbox } from '../encode/videos.ts'

const VIDEO = { videoId: '0123456789abcdef'.repeat(2), generation: 1, sourceNumber: 1 }
const PLAN: Plan = { durationS: 60, isSeekable: true, audioTrack: { renditionId: 9, bitrateBps: 128_000, frameCount: 2813 } }
const PART = { kind: 'audio', firstSegment: 0, segmentCount: 1, decodesFromStart: false } as const

async function* bodyOf(sizeBytes: number) {
  yield Buffer.alloc(sizeBytes)
}

test('F-348: no chunk is handed out while results that wait for their check fill the memory', async () => {
  const { db, write } = await openOwnDatabase()
  const folder = await newFolder()
  await mkdir(join(folder, 'tmp'))
  const sources = blobFolder(folder, join(folder, 'tmp'))
  await sources.put('source', Buffer.alloc(64))
  const source = { videoId: VIDEO.videoId, number: 1, file: 'source', sizeBytes: 63, sha256: Buffer.alloc(32) }
  const sealing = { iv: Buffer.alloc(16), macs: Buffer.alloc(0), wrappedKey: null }
  await write((tx) =>
    tx
      .insertInto('source')
      .values({ ...source, ...sealing })
      .execute(),
  )
  const deps = { db, write, nowS: () => 1_000, workerTasks: undefined }
  const [one, other] = await Promise.all(
    ['one', 'other'].map(async (name) =>
      authenticateWorker(deps, (await addWorker(deps, { name, trusted: false }, 'server')).token),
    ),
  )
  if (!one || !other) throw new Error('two workers were added')
  const sandbox = await openDefaultSandbox()
  const body = { encoder: encoderFingerprint(sandbox), kinds: ['audio' as const] }
  const direct = { arePossible: async () => false, presign: async () => undefined, removeLate: () => undefined }
  const order: string[] = []
  // The first result fails its check, which is written down when the test lets it.
  const written = Promise.withResolvers<void>()
  const opened = new AsyncDisposableStack()
  onTestFinished(() => opened.disposeAsync())
  const handOut = startHandOut(
    {
      ...{
        db,
        nowS: () => 1_000,
        folders: { sources, segments: sources },
        direct,
        sandbox,
        onSuspended: () => undefined,
        log: pino({ level: 'silent' }),
      },
      write: Object.assign(async () => written.promise as Promise<never>, write),
      signals: { on: () => () => undefined, send: async () => undefined },
      async claimForRemote(remote: RemoteEncoder) {
        order.push('claimed')
        const sealed = {
          keyHex: '1'.repeat(32),
          ivHex: '2'.repeat(32),
          sizeBytes: 63,
          withLocalCopy: async <T>(use: (path: string) => Promise<T>) => use(''),
        }
        const part = {
          video: VIDEO,
          plan: PLAN,
          encoder: body.encoder,
          part: PART,
          threads: 1,
          gains: new Map(),
          source: sealed,
        } as const
        const sink = { onInit: () => undefined, onSegment: async () => undefined }
        return {
          key: VIDEO.videoId,
          run: async (signal) => void (await remote.encode({ ...part, signal }, sink).catch(() => undefined)),
        }
      },
    },
    opened,
    1_000,
  )
  const claim = (worker: WorkerRow) =>
    handOut.claim({ ...worker, encoder: body.encoder, kinds: 'audio', lastSeenAtS: 1_000 }, body, new AbortController().signal)
  const task = handOut.getTask(one, (await claim(one))?.id ?? '')
  await task.receiveInit(9, bodyOf(100))
  await task.receiveSegment(9, 0, bodyOf(2_000))
  handOut.end(task, { outcome: 'done' })
  const second = claim(other)
  for (let turn = 0; turn < 20; turn++) await setImmediate()
  order.push('checked')
  written.resolve()
  await expect.poll(() => order).toEqual(['claimed', 'checked', 'claimed'])
  handOut.stopWaiting()
  await second
})
