import { createHash } from 'node:crypto'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { createAccount } from '../../src/accounts/account.ts'
import { createStorageQuota } from '../../src/accounts/storage-quota.ts'
import { findVideo } from '../../src/catalogue/video-store.ts'
import { parseMasterKey } from '../../src/crypto/master-key.ts'
import type { SourceDeps } from '../../src/ingest/source.ts'
import { type IncomingUpload, receiveUpload } from '../../src/ingest/upload.ts'
import { issueUploadPolicy } from '../../src/ingest/upload-policy.ts'
import { createSignals } from '../../src/signals/signals.ts'
import { blobFolder, createFolders } from '../../src/storage/folder.ts'
import { openOwnDatabase } from '../db/database.ts'

// The rule of an upload without the form: what holds for every way in.

const NOW_S = 1_800_000_000
const MAX_BYTES = 20_000_000

async function openIngest() {
  const { db, slowQueryDb, write } = await openOwnDatabase()
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-upload-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const nowS = () => NOW_S
  const received: string[] = []
  const signals = createSignals(write)
  signals.on('work-queued', (work) => work === 'encode' && received.push(work))
  await createFolders(join(folder, 'tmp'))
  const deps: SourceDeps = {
    ...{ db, write, nowS, wallNowS: nowS },
    masterKey: parseMasterKey(Buffer.alloc(32, 1)),
    quota: createStorageQuota({ db, slowQueryDb }),
    sources: blobFolder(join(folder, 'sources'), join(folder, 'tmp')),
    uploadMaxBytes: MAX_BYTES,
    hasRoom: async () => true,
    signals,
    log: pino({ level: 'silent' }),
  }
  const { accountId } = await createAccount({ db, write, nowS }, 'owner', { mayUpload: true, mayImport: true })

  async function issue() {
    const { videoId, form } = await issueUploadPolicy(deps, { accountId, mayUpload: true }, { title: 'A video' })
    const fields = new Map(Object.entries(form))
    const send = (file: IncomingUpload['file'], declaredBytes = 0) =>
      receiveUpload(deps, { fields, fileName: 'a.mp4', file, declaredBytes })
    const status = async () => (await findVideo(db, accountId, videoId))?.status
    return { videoId, key: form.key, send, status }
  }
  const storedFiles = async () =>
    (await readdir(folder, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile()).map(({ name }) => name)
  const limitTo = (storageLimitBytes: number) =>
    write((tx) => tx.updateTable('account').set({ storageLimitBytes }).where('id', '=', accountId).execute())
  return { issue, storedFiles, limitTo, received }
}

async function* parts(...all: readonly (string | Buffer | Error)[]): AsyncGenerator<Buffer> {
  for (const part of all) {
    if (part instanceof Error) throw part
    yield Buffer.from(part)
  }
}

const sha256 = (text: string) => createHash('sha256').update(text).digest()

test('F-90: a file whose rest does not come leaves nothing, and its policy and its room are free for the next attempt', async () => {
  const { issue, storedFiles, limitTo, received } = await openIngest()
  await limitTo(10)
  const { key, send, status } = await issue()
  const lost = new Error('the rest is lost')
  await expect(send(parts('a video', lost), 9)).rejects.toBe(lost)
  expect([await storedFiles(), await status(), received]).toEqual([[], 'PRE-Upload', []])
  expect(await send(parts('a ', 'video'), 9)).toEqual({ key, sha256: sha256('a video') })
  expect([await storedFiles(), await status()]).toEqual([[expect.stringMatching(/\.sealed$/)], 'Queued'])
  expect(received).toHaveLength(1)
})

test('F-91: the same file sent again, later or at the same time, is confirmed and stored once; another one is refused', async () => {
  const { issue, storedFiles, received } = await openIngest()
  const { key, send } = await issue()
  const answers = await Promise.all([send(parts('a ', 'video')), send(parts('a video'))])
  answers.push(await send(parts('a', ' video')))
  expect(answers).toEqual(Array(3).fill({ key, sha256: sha256('a video') }))
  for (const other of ['a vide', 'a videos', 'A video'])
    await expect(send(parts(other))).rejects.toMatchObject({ kind: 'forbidden' })
  expect([await storedFiles(), received]).toEqual([[expect.any(String)], [expect.any(String)]])
})

test.each([
  { declared: 'that says so', declaredBytes: 11, isRead: false },
  { declared: 'that says nothing', declaredBytes: 0, isRead: true },
])('F-92: a file $declared is refused when it does not fit into its account, and leaves nothing', async (sent) => {
  const { issue, storedFiles, limitTo } = await openIngest()
  await limitTo(10)
  const { send, status } = await issue()
  let isRead = false
  async function* file() {
    isRead = true
    yield* parts('eleven byte')
  }
  await expect(send(file(), sent.declaredBytes)).rejects.toMatchObject({ kind: 'over-quota' })
  expect([isRead, await storedFiles(), await status()]).toEqual([sent.isRead, [], 'PRE-Upload'])
  await send(parts('ten  bytes'), 10)
})
