import { createHash } from 'node:crypto'
import { BrokenAnswer, type Bucket, type BucketAnswer, BucketError, type BucketRequest, explainError } from './bucket.ts'
import type { Blocks } from './spool.ts'
import { escapeXml, readXml } from './xml.ts'

// What is done with objects and unfinished multipart uploads, one request or one list of them at a time.

type ListedObject = { key: string; sizeBytes: number; changedAtS: number }

/** The objects whose keys begin with a text, in the order of their bytes, in constant memory. */
export async function* listObjects(bucket: Bucket, prefix: string, after = ''): AsyncGenerator<ListedObject> {
  for (let from: Record<string, string> = after === '' ? {} : { 'start-after': after }; ; ) {
    const page = await askXml(bucket, { method: 'GET', query: { 'list-type': '2', prefix, ...from } })
    for (const found of page.each('Contents'))
      yield {
        key: found.first('Key') ?? '',
        sizeBytes: Number(found.first('Size')),
        changedAtS: Date.parse(found.first('LastModified') ?? '') / 1000,
      }
    const token = page.first('NextContinuationToken')
    if (page.first('IsTruncated') !== 'true' || token === undefined) return
    from = { 'continuation-token': token }
  }
}

const DELETED_IN_ONE_REQUEST = 1000

/** Those that do not exist count as removed. */
export async function removeObjects(bucket: Bucket, keys: readonly string[]): Promise<void> {
  for (let at = 0; at < keys.length; at += DELETED_IN_ONE_REQUEST) {
    const names = keys.slice(at, at + DELETED_IN_ONE_REQUEST).map((key) => `<Object><Key>${escapeXml(key)}</Key></Object>`)
    const body = Buffer.from(`<Delete><Quiet>true</Quiet>${names.join('')}</Delete>`)
    const headers = { 'content-md5': createHash('md5').update(body).digest('base64') } // demanded, whatever is signed
    await askXml(bucket, { method: 'POST', query: { delete: '' }, headers, body })
  }
}

/** An object's size, the attempt that wrote it, and its version. Undefined: there is none. */
export async function findObject(bucket: Bucket, key: string) {
  try {
    return describeObject(await bucket.send({ method: 'HEAD', key }))
  } catch (error) {
    if (!isMissing(error)) throw error
  }
  // An answer to HEAD does not say whether the object or the bucket is missing; one to GET does.
  try {
    return describeObject(await bucket.send({ method: 'GET', key }))
  } catch (error) {
    if (!isMissing(error)) throw error
    return undefined
  }
}

export function describeObject(headers: BucketAnswer['headers']) {
  const { etag = '', 'last-modified': changed = '', 'content-length': length, 'content-range': range } = headers
  return {
    sizeBytes: Number(range === undefined ? length : range.split('/')[1]),
    changedAtS: Date.parse(changed) / 1000,
    etag,
    attempt: headers[ATTEMPT],
  }
}

export function isMissing(error: unknown): error is BucketError {
  return error instanceof BucketError && (error.status === 404 || error.code === 'NoSuchUpload')
}

/** The whole body. @throws BrokenAnswer when it is shorter than announced */
export async function readBody(answer: BucketAnswer): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(piecesOf(answer)))
}

/** The body as it arrives. @throws BrokenAnswer at its end, when it is shorter than announced */
export async function* piecesOf({ headers, body }: BucketAnswer): AsyncGenerator<Buffer> {
  let lengthBytes = 0
  for await (const piece of body) {
    lengthBytes += piece.length
    yield piece
  }
  const announced = headers['content-length']
  if (announced !== undefined && Number(announced) !== lengthBytes) throw new BrokenAnswer('the answer ended early')
}

/** An answer may have an error after a status of 200, of the whole or of one of several objects. */
export async function askXml(bucket: Bucket, request: BucketRequest) {
  return bucket.ask(request, async (answer) => {
    const xml = readXml((await readBody(answer)).toString())
    const [error] = xml.each('Error')
    if (error) throw explainError(answer.status, error.first('Code') ?? '', error.first('Message') ?? '', bucket.words)
    return xml
  })
}

// --- multipart uploads ---

/** The metadata by which a finished object is recognised after the answer was lost. */
const ATTEMPT = 'x-amz-meta-attempt'

/** @returns the id of the upload */
export async function beginUpload(bucket: Bucket, key: string, attempt: string): Promise<string> {
  const answer = await askXml(bucket, { method: 'POST', key, query: { uploads: '' }, headers: { [ATTEMPT]: attempt } })
  return answer.first('UploadId') ?? ''
}

type Part = { key: string; uploadId: string; number: number; signal?: AbortSignal | undefined }

/** @returns its ETag */
export async function sendPart(bucket: Bucket, { key, uploadId, number, signal }: Part, body: Buffer | Blocks): Promise<string> {
  const { etag = '' } = await bucket.send({ method: 'PUT', key, query: { partNumber: String(number), uploadId }, body, signal })
  return etag
}

/** Makes bytes of an object that exists a part, without moving them through this server. @returns its ETag */
export async function copyPart(bucket: Bucket, part: Part, range: { first: number; last: number }): Promise<string> {
  const headers = {
    'x-amz-copy-source': `/${bucket.address.bucket}/${part.key}`,
    'x-amz-copy-source-range': `bytes=${range.first}-${range.last}`,
  }
  const query = { partNumber: String(part.number), uploadId: part.uploadId }
  const answer = await askXml(bucket, { method: 'PUT', key: part.key, query, headers })
  return answer.first('ETag') ?? ''
}

/**
 * Makes the parts one object. What the bucket answers may be lost, or say that there is no such upload because a first try succeeded:
 * whatever it is, the object is looked at.
 * @returns false: there is no such upload, and it did not become the object
 */
export async function completeUpload(
  bucket: Bucket,
  {
    key,
    uploadId,
    attempt,
    etags,
    sizeBytes,
  }: { key: string; uploadId: string; attempt: string; etags: readonly string[]; sizeBytes: number },
): Promise<boolean> {
  const parts = etags.map((etag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${escapeXml(etag)}</ETag></Part>`)
  const body = Buffer.from(`<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`)
  let problem: unknown
  try {
    await askXml(bucket, { method: 'POST', key, query: { uploadId }, body })
  } catch (error) {
    problem = error
  }
  const found = await findObject(bucket, key)
  if (found?.attempt === attempt && found.sizeBytes === sizeBytes) return true
  if (problem === undefined || isMissing(problem)) return false
  throw problem
}

/** An upload that is gone counts as ended. */
export async function abortUpload(bucket: Bucket, key: string, uploadId: string): Promise<void> {
  try {
    await bucket.send({ method: 'DELETE', key, query: { uploadId } })
  } catch (error) {
    if (!isMissing(error)) throw error
  }
}

export async function doesUploadExist(bucket: Bucket, key: string, uploadId: string): Promise<boolean> {
  try {
    await bucket.send({ method: 'GET', key, query: { uploadId, 'max-parts': '1' } })
    return true
  } catch (error) {
    if (!isMissing(error)) throw error
    return false
  }
}

/** The unfinished uploads below a prefix. */
export async function* listUploads(bucket: Bucket, prefix: string) {
  for (let marker: Record<string, string> = {}; ; ) {
    const page = await askXml(bucket, { method: 'GET', query: { uploads: '', prefix, ...marker } })
    for (const upload of page.each('Upload'))
      yield {
        key: upload.first('Key') ?? '',
        uploadId: upload.first('UploadId') ?? '',
        begunAtS: Date.parse(upload.first('Initiated') ?? '') / 1000,
      }
    const [keyMarker, idMarker] = [page.first('NextKeyMarker'), page.first('NextUploadIdMarker')]
    if (page.first('IsTruncated') !== 'true' || keyMarker === undefined) return
    marker = { 'key-marker': keyMarker, 'upload-id-marker': idMarker ?? '' }
  }
}
