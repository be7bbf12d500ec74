import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { BlobLost, ignoreLost } from '../blob-store.ts'
import { BrokenAnswer, type Bucket, type BucketAnswer } from './bucket.ts'
import {
  abortUpload,
  beginUpload,
  completeUpload,
  copyPart,
  doesUploadExist,
  findObject,
  isMissing,
  listObjects,
  piecesOf,
  removeObjects,
  sendPart,
} from './objects.ts'
import { sendParts } from './parts.ts'
import { type Spooled, spool } from './spool.ts'

// A blob that grows is a multipart upload, and an object for each number of bytes that may count: its state. A state has the ETags of the
// whole parts, and the bytes behind them, so that any process continues from it. The one that counts stays until a later one was
// counted: the caller's row, by its number of bytes, says which that is. Parts have one size, so that those of a call that failed are
// overwritten by the next one.

export type GrowingBlob = { bucket: Bucket; key: string; partBytes: number; newSpooled(): Spooled }

/** `etags`: of its whole parts, which have `partBytes` each; `tail`: the bytes behind them. Without an upload there are no parts. */
type State = { upload: { id: string; attempt: string } | undefined; partBytes: number; etags: string[]; tail: Spooled }

const emptyState = ({ partBytes, newSpooled }: GrowingBlob): State => ({
  ...{ upload: undefined, partBytes, etags: [] },
  tail: newSpooled(),
})

export async function appendPart(
  blob: GrowingBlob,
  countedBytes: number,
  bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<number> {
  const { bucket, key } = blob
  const states = await listStates(bucket, key)
  if (countedBytes === 0) await endStates(blob, states)
  const before = countedBytes === 0 ? emptyState(blob) : await readState(blob, states, countedBytes)
  let { upload } = before
  async function begin() {
    upload ??= await newUpload(blob)
    return upload.id
  }
  const { etags, sizeBytes, ...sent } = await sendParts(bytes, { ...before, bucket, key, begin, newSpooled: blob.newSpooled })
  await using tail = sent.tail
  if (sizeBytes > countedBytes) await putState(blob, { ...before, etags, tail, upload }, sizeBytes)
  else if (upload && !(await doesUploadExist(bucket, key, upload.id))) {
    const state = await rebuild(blob, countedBytes)
    await using tail = state.tail
    await putState(blob, { ...state, tail }, countedBytes)
  }
  const counted = [countedBytes, sizeBytes]
  if (countedBytes > 0)
    await removeObjects(bucket, states.filter((state) => !counted.includes(state.countedBytes)).map(stateKeyOf(key)))
  return sizeBytes
}

export async function finish(blob: GrowingBlob, countedBytes: number): Promise<void> {
  const { bucket, key } = blob
  const states = await listStates(bucket, key)
  if (!(await isWhole(blob, states, countedBytes))) {
    const state = countedBytes === 0 ? emptyState(blob) : await readState(blob, states, countedBytes)
    if (!(await complete(blob, state, countedBytes))) await complete(blob, await rebuild(blob, countedBytes), countedBytes)
  }
  await removeObjects(bucket, states.map(stateKeyOf(key)))
}

/** Whether an earlier call has finished it, and was ended before its caller knew. */
async function isWhole({ bucket, key }: GrowingBlob, states: readonly StateName[], countedBytes: number): Promise<boolean> {
  if (countedBytes === 0 || states.some((state) => state.countedBytes === countedBytes)) return false
  return (await findObject(bucket, key))?.sizeBytes === countedBytes
}

/** @returns false: the upload is gone */
async function complete({ bucket, key }: GrowingBlob, { upload, etags, ...state }: State, sizeBytes: number): Promise<boolean> {
  await using tail = state.tail
  if (!upload) {
    await bucket.send({ method: 'PUT', key, body: tail })
    return true
  }
  try {
    const last =
      tail.sizeBytes() > 0 ? [await sendPart(bucket, { key, uploadId: upload.id, number: etags.length + 1 }, tail)] : []
    const { id: uploadId, attempt } = upload
    return await completeUpload(bucket, { key, uploadId, attempt, etags: [...etags, ...last], sizeBytes })
  } catch (error) {
    if (!isMissing(error)) throw error
    return false
  }
}

async function newUpload({ bucket, key }: GrowingBlob) {
  const attempt = randomBytes(16).toString('hex')
  return { id: await beginUpload(bucket, key, attempt), attempt }
}

/**
 * An upload of the first bytes of the whole object: where one was finished whose row still counts fewer bytes. They are copied
 * within the bucket.
 * @throws BlobLost
 */
async function rebuild(blob: GrowingBlob, countedBytes: number): Promise<State> {
  const { bucket, key, partBytes, newSpooled } = blob
  const found = await findObject(bucket, key)
  if (!found || found.sizeBytes < countedBytes)
    throw new BlobLost(`the bucket has ${found?.sizeBytes ?? 0} of its bytes instead of ${countedBytes}`)
  const parts = Math.floor(countedBytes / partBytes)
  const upload = parts > 0 ? await newUpload(blob) : undefined
  const etags: string[] = []
  for (let number = 1; upload && number <= parts; number++) {
    const range = { first: (number - 1) * partBytes, last: number * partBytes - 1 }
    etags.push(await copyPart(bucket, { key, uploadId: upload.id, number }, range))
  }
  if (countedBytes === parts * partBytes) return { upload, partBytes, etags, tail: newSpooled() }
  const range = `bytes=${parts * partBytes}-${countedBytes - 1}`
  const readTail = (answer: BucketAnswer) => spool(newSpooled(), piecesOf(answer))
  return { upload, partBytes, etags, tail: await bucket.ask({ method: 'GET', key, headers: { range } }, readTail) }
}

// --- states ---

type StateName = { countedBytes: number; uploadId: string | undefined; changedAtS: number }

/** Between the key of a blob and what its states are named: no name has it, and it comes before all that names have. */
const MARK = '!'
/** Of a state without an upload. */
const NO_UPLOAD = '-'

/** A state’s key has the upload’s id, so that it can be ended without being read. Ids have characters that keys should not have. */
function stateKeyOf(key: string) {
  return ({ countedBytes, uploadId }: Pick<StateName, 'countedBytes' | 'uploadId'>) =>
    `${key}${MARK}${countedBytes}.${uploadId === undefined ? NO_UPLOAD : Buffer.from(uploadId).toString('base64url')}`
}

/** Undefined: an object of another kind. */
export function readStateKey(stateKey: string): { key: string; countedBytes: number; uploadId: string | undefined } | undefined {
  const [key = '', state] = stateKey.split(MARK)
  if (state === undefined) return undefined
  const [countedBytes, id = NO_UPLOAD] = state.split('.')
  return {
    key,
    countedBytes: Number(countedBytes),
    uploadId: id === NO_UPLOAD ? undefined : Buffer.from(id, 'base64url').toString(),
  }
}

/** The key of a blob, whether it is given its own or that of one of its states. */
export function blobKeyOf(key: string): string {
  return key.split(MARK, 1)[0] ?? ''
}

export async function listStates(bucket: Bucket, key: string): Promise<StateName[]> {
  const states: StateName[] = []
  for await (const { key: stateKey, changedAtS } of listObjects(bucket, key + MARK)) {
    const state = readStateKey(stateKey)
    if (state) states.push({ ...state, changedAtS })
  }
  return states
}

/** Removes a growing blob: its states, and the uploads that they name. */
export async function removeStates(blob: GrowingBlob): Promise<void> {
  await endStates(blob, await listStates(blob.bucket, blob.key))
}

async function endStates({ bucket, key }: GrowingBlob, states: readonly StateName[]): Promise<void> {
  for (const uploadId of new Set(states.map((state) => state.uploadId))) {
    if (uploadId !== undefined) await abortUpload(bucket, key, uploadId)
  }
  await removeObjects(bucket, states.map(stateKeyOf(key)))
}

/** One line of JSON, and the tail. */
async function putState(
  { bucket, key }: GrowingBlob,
  { upload, partBytes, etags, tail }: State,
  countedBytes: number,
): Promise<void> {
  const line = Buffer.from(`${JSON.stringify({ attempt: upload?.attempt, partBytes, etags })}\n`)
  const name = stateKeyOf(key)({ countedBytes, uploadId: upload?.id })
  async function* blocks() {
    yield line
    yield* tail.blocks()
  }
  await bucket.send({ method: 'PUT', key: name, body: { sizeBytes: () => line.length + tail.sizeBytes(), blocks } })
}

/** Some stores list what was written a moment ago only after another one: nothing counts as lost before. */
const LISTED_LATE_MS = [200, 1_000] as const

/** @throws BlobLost */
async function readState(blob: GrowingBlob, states: readonly StateName[], countedBytes: number): Promise<State> {
  let found = await findUsableState(blob, states, countedBytes)
  for (const pauseMs of LISTED_LATE_MS) {
    if (found) break
    try {
      return await rebuild(blob, countedBytes)
    } catch (error) {
      ignoreLost(error)
    }
    await pause(pauseMs)
    found = await findUsableState(blob, await listStates(blob.bucket, blob.key), countedBytes)
  }
  return found ? loadState(blob, found) : rebuild(blob, countedBytes)
}

/** Of several for one number of bytes all but one are left from uploads that have ended. */
async function findUsableState({ bucket, key }: GrowingBlob, states: readonly StateName[], countedBytes: number) {
  const candidates = states.filter((state) => state.countedBytes === countedBytes)
  if (candidates.length === 1) return candidates[0]
  for (const candidate of candidates.sort((a, b) => b.changedAtS - a.changedAtS)) {
    const { uploadId } = candidate
    if (uploadId === undefined || (await doesUploadExist(bucket, key, uploadId))) return candidate
  }
  return undefined
}

async function loadState({ bucket, key, newSpooled }: GrowingBlob, name: StateName): Promise<State> {
  const { line, tail } = await bucket.ask({ method: 'GET', key: stateKeyOf(key)(name) }, async (answer) => {
    const pieces = piecesOf(answer)
    const { line, rest } = await readLine(pieces)
    async function* behind() {
      yield rest
      yield* pieces
    }
    return { line, tail: await spool(newSpooled(), behind()) }
  })
  const saved: { attempt?: string; partBytes: number; etags: string[] } = JSON.parse(line)
  const { attempt = '', partBytes, etags } = saved
  const upload = name.uploadId === undefined ? undefined : { id: name.uploadId, attempt }
  return { upload, partBytes, etags, tail }
}

/** @returns the first line, and what came with its end */
async function readLine(pieces: AsyncGenerator<Buffer>): Promise<{ line: string; rest: Buffer }> {
  const read: Buffer[] = []
  for (;;) {
    const { value: piece, done } = await pieces.next()
    if (done) throw new BrokenAnswer('the answer has no line')
    const lineEnd = piece.indexOf('\n')
    read.push(piece.subarray(0, lineEnd === -1 ? piece.length : lineEnd))
    if (lineEnd !== -1) return { line: Buffer.concat(read).toString(), rest: piece.subarray(lineEnd + 1) }
  }
}
