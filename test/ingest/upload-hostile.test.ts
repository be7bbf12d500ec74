import { randomBytes } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import type { UploadCredentials } from '../client.ts'
import { getStoredSource, listFiles } from '../data-folder.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { rounds } from '../seeded-random.ts'
import { BOUNDARY, formBody, post, uploadParts } from './raw-form.ts'

const MAX_BYTES = 1_000_000

let reelgate: Reelgate & { remove(): Promise<void> }
let upload: UploadCredentials
beforeAll(async () => {
  reelgate = await startSharedReelgate({ env: { REELGATE_UPLOAD_MAX_BYTES: String(MAX_BYTES) } })
})
afterAll(() => reelgate.remove())
beforeEach(async () => {
  upload = await reelgate.owner.credentials('A video')
})

// Whatever a test sent: nothing of it is left, and honest clients are served, with the same credentials.
afterEach(async () => {
  await expect.poll(() => listFiles(reelgate, 'tmp')).toEqual([])
  expect((await listFiles(reelgate, 'sources')).filter((file) => file.includes(upload.videoId))).toEqual([])
  expect((await reelgate.owner.video(upload.videoId)).status).toBe('PRE-Upload')
  expect((await reelgate.owner.send(upload, new Blob(['no video']))).status).toBe(201)
  expect(await getStoredSource(reelgate, upload.videoId).clear()).toEqual(Buffer.from('no video'))
})

const send = (body: Buffer, sending?: Parameters<typeof post>[2]) => post(`${reelgate.url}/upload`, body, sending)
const honest = (file: string | Buffer = 'no video') => uploadParts(upload, file)
const isRefusal = (status: number | undefined) => status === 400 || status === 403 || status === 413

test.each([
  {
    form: '10 000 small parts before the file',
    parts: () => [...Array.from({ length: 10_000 }, (_, i) => ({ name: `f${i}`, body: 'x' })), ...honest()],
  },
  {
    form: '10 000 small parts after the file',
    parts: () => [...honest(), ...Array.from({ length: 10_000 }, (_, i) => ({ name: `f${i}`, body: 'x' }))],
  },
  {
    form: '10 000 files',
    parts: () => [...honest(), ...Array.from({ length: 10_000 }, () => ({ name: 'file', fileName: 'a', body: 'x' }))],
  },
  { form: 'two files', parts: () => [...honest('first'), { name: 'file', fileName: 'b.mp4', body: 'second' }] },
  {
    form: 'a header of 1 MB',
    parts: () => [{ header: `Content-Disposition: form-data; name="x"\r\nX: ${'x'.repeat(2 ** 20)}`, body: 'x' }, ...honest()],
  },
  {
    form: 'a file whose header has 1 MB',
    parts: () => [
      ...honest().slice(0, -1),
      { header: `X: ${'x'.repeat(2 ** 20)}\r\nContent-Disposition: form-data; name="file"; filename="a"`, body: 'x' },
    ],
  },
  {
    form: '100 000 header lines',
    parts: () => [
      { header: `Content-Disposition: form-data; name="x"\r\n${'X: x\r\n'.repeat(100_000)}X: x`, body: 'x' },
      ...honest(),
    ],
  },
  { form: 'a part without a name', parts: () => [{ header: 'Content-Disposition: form-data', body: 'x' }, ...honest()] },
  {
    form: 'a file without a name',
    parts: () => [{ header: 'Content-Disposition: form-data; filename="a.mp4"', body: 'x' }, ...honest()],
  },
  { form: 'a name of 1 MB', parts: () => [{ name: 'x'.repeat(2 ** 20), body: 'x' }, ...honest()] },
  { form: 'a field of 1 MB', parts: () => [{ name: 'success_action_redirect', body: 'x'.repeat(2 ** 20) }, ...honest()] },
  { form: 'a field named __proto__', parts: () => [{ name: '__proto__', body: 'x' }, ...honest()] },
  {
    form: 'a nested form',
    parts: () => [
      {
        header: 'Content-Disposition: form-data; name="files"\r\nContent-Type: multipart/mixed; boundary=inner',
        body: '--inner\r\nContent-Disposition: file; filename="a"\r\n\r\nx\r\n--inner--',
      },
      ...honest(),
    ],
  },
  { form: 'no file', parts: () => honest().slice(0, -1) },
  { form: 'no part', parts: () => [] },
])('U12: a form with $form is refused', async ({ parts }) => {
  const answer = await send(formBody(parts()))
  expect(answer).toSatisfy((given: typeof answer) => isRefusal(given?.status))
  expect(answer?.text).toMatch(/<Error><Code>\w+<\/Code><Message>[A-Z].*\.<\/Message>/)
})

test.each([71, 200, 10_000])('U12: a boundary of %i characters is refused', async (length) => {
  const boundary = 'b'.repeat(length)
  const answer = await send(formBody(honest(), { boundary }), { boundary })
  expect(answer?.status).toBe(400)
})

test('U12: the longest boundary that the standard allows, 70 characters, is read', async () => {
  const other = await reelgate.owner.credentials('Another video')
  const boundary = 'b'.repeat(70)
  expect((await send(formBody(uploadParts(other, 'no video'), { boundary }), { boundary }))?.status).toBe(204)
})

test.each([
  { cut: 'before its last boundary', cutAt: (body: Buffer) => body.lastIndexOf(`\r\n--${BOUNDARY}--`) },
  { cut: 'in its last boundary', cutAt: (body: Buffer) => body.length - 6 },
  { cut: 'before the closing dashes', cutAt: (body: Buffer) => body.length - 4 },
  { cut: 'in the file', cutAt: (body: Buffer) => body.indexOf('no video') + 3 },
  { cut: 'in the header of the file', cutAt: (body: Buffer) => body.indexOf('name="file"') + 3 },
  { cut: 'in a field', cutAt: (body: Buffer) => body.indexOf('AWS4') + 2 },
  { cut: 'to nothing', cutAt: () => 0 },
])('U12: a form that ends $cut is refused, not taken for a whole one', async ({ cutAt }) => {
  const body = formBody(honest())
  expect((await send(body.subarray(0, cutAt(body))))?.status).toSatisfy(isRefusal)
})

test('U12: a part after the file that never ends makes the whole form void', async () => {
  const body = formBody([...honest(), { name: 'after', body: 'x'.repeat(1000) }])
  expect((await send(body.subarray(0, body.length - 500)))?.status).toSatisfy(isRefusal)
})

test.each([
  { type: 'text/plain', status: 415 },
  { type: 'application/json', status: 415 },
  { type: 'application/x-www-form-urlencoded', status: 415 },
  { type: 'multipart/form-data', status: 400 },
  { type: 'multipart/form-data; boundary=', status: 400 },
  { type: 'multipart/form-data; boundary=another', status: 400 },
])('U15: a body sent as $type is refused', async ({ type, status }) => {
  expect((await send(formBody(honest()), { contentType: type }))?.status).toBe(status)
})

test.each([
  { announced: 'announced', chunkBytes: undefined, sizeBytes: 3 * MAX_BYTES },
  { announced: 'announced, just over the limit', chunkBytes: undefined, sizeBytes: MAX_BYTES + 1 },
  { announced: 'not announced', chunkBytes: 65_536, sizeBytes: 3 * MAX_BYTES },
  { announced: 'not announced, just over the limit', chunkBytes: 65_536, sizeBytes: MAX_BYTES + 1 },
])(
  'U03: a file that is too large ($announced) is refused with 413, in words that name the limit',
  async ({ chunkBytes, sizeBytes }) => {
    const answer = await send(formBody(honest(randomBytes(sizeBytes))), { chunkBytes })
    expect(answer?.status).toBe(413)
    expect(answer?.text).toMatch(/<Code>EntityTooLarge<\/Code><Message>[^<]*1000000 bytes/)
  },
)

test('U03: a file of exactly the largest size is taken', async () => {
  const other = await reelgate.owner.credentials('Another video')
  expect((await send(formBody(uploadParts(other, randomBytes(MAX_BYTES)))))?.status).toBe(204)
})

test.each([
  { where: 'in a field', cutAt: (body: Buffer) => body.indexOf('AWS4') + 2 },
  { where: 'at the first byte of the file', cutAt: (body: Buffer) => body.indexOf('filename') + 30 },
  { where: 'in the file', cutAt: (body: Buffer) => body.length - 300_000 },
  { where: 'in its last boundary', cutAt: (body: Buffer) => body.length - 10 },
])('E05: a client that breaks off $where leaves nothing', async ({ cutAt }) => {
  const body = formBody(honest(randomBytes(800_000)))
  expect(await send(body, { cutAfterBytes: cutAt(body) })).toBeUndefined()
})

const BROKEN_UPLOADS = rounds(50, 10_000)

test(`E05: ${BROKEN_UPLOADS} clients that break off at random places leave nothing`, async () => {
  const body = formBody(honest(randomBytes(400_000)))
  for (let made = 0; made < BROKEN_UPLOADS; made += 50)
    await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        send(body, { cutAfterBytes: Math.floor((body.length * (i + 0.5)) / 50), chunkBytes: i % 2 ? 9_999 : undefined }),
      ),
    )
})
