import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { listFiles as listFolder } from '../data-folder.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { BOUNDARY, formBody, type Part, post, type Sending } from '../ingest/raw-form.ts'
import { addFile, listFiles, makeImage, SRT } from './sample-files.ts'

// Forms with a poster or captions, byte by byte as odd clients write them.

let reelgate: Reelgate & { remove(): Promise<void> }
let videoId: string
let image: Buffer
beforeAll(async () => {
  reelgate = await startSharedReelgate()
  videoId = (await reelgate.owner.credentials('It will come')).videoId
  image = await makeImage('640x360')
})
afterAll(() => reelgate.remove())

const captions: Part = { name: 'file', fileName: 'captions.srt', body: SRT }
const poster = (): Part => ({ name: 'file', fileName: 'poster.png', body: image })

/** Adds captions in a language of their own to the video; without a language, a poster. */
async function send(body: Buffer, language?: string, sending: Sending = {}) {
  const query = language === undefined ? '' : `?language=${language}`
  const lines = [`Authorization: Apisecret ${reelgate.owner.apiKey}`]
  return post(`${reelgate.url}/api/videos/${videoId}/files${query}`, body, { ...sending, lines })
}

/** What a refused form must leave as it was: what the owner is shown, and every file that is kept. */
async function kept() {
  const folders = await Promise.all(['tmp', 'files', 'posters'].map((folder) => listFolder(reelgate, folder)))
  return { files: await listFiles(reelgate.owner, videoId), folders }
}

/** The same without what is under way: what a client has broken off may still be arriving. */
async function keptAtRest() {
  for (;;) {
    const found = await kept()
    if (found.folders[0]?.length === 0) return found
    await pause(20)
  }
}

test.each<[form: string, language: string, body: Buffer, sending?: Sending]>([
  ['with a fixed boundary and no line break after its end', 'aa', formBody([captions], { ending: '--' })],
  ['with a short boundary', 'ab', formBody([captions], { boundary: 'AaB03x' }), { boundary: 'AaB03x' }],
  ['a byte at a time', 'ac', formBody([captions]), { chunkBytes: 1 }],
  ['with fields before the file', 'ad', formBody([{ name: 'title', body: 'x' }, { name: 'language', body: 'zz' }, captions])],
  ['with a field after the file', 'ae', formBody([captions, { name: 'submit', body: 'Send' }])],
  ['with a file that has no name', 'af', formBody([{ name: 'file', body: SRT }])],
  [
    'with a file of a type that says nothing',
    'ag',
    formBody([
      { ...captions, header: 'content-disposition: form-data; name="File"; filename="a.srt"\r\nContent-Type: image/png' },
    ]),
  ],
])('captions sent as a form %s are added', async (_, language, body, sending) => {
  const answer = await send(body, language, sending)
  expect([answer?.status, JSON.parse(answer?.text ?? '{}')]).toMatchObject([200, { lang: language }])
  const added = (await listFiles(reelgate.owner, videoId)).filter(({ lang }) => lang === language)
  expect(added).toHaveLength(1)
})

test.each<[form: string, sending: Sending]>([
  ['in one piece', {}],
  ['a byte at a time', { chunkBytes: 1 }],
])('a poster sent %s without a word of its type is drawn', async (_, sending) => {
  const answer = await send(formBody([poster()], { ending: '--' }), undefined, sending)
  expect([answer?.status, JSON.parse(answer?.text ?? '[]')]).toMatchObject([200, [{ video_width: 640 }, { video_width: 427 }]])
})

const HALVES: readonly [form: string, form: (file: Part) => Buffer][] = [
  ['two files', (file) => formBody([file, file])],
  ['no file', () => formBody([{ name: 'title', body: 'x' }])],
  ['a file under another name', (file) => formBody([{ ...file, name: 'poster' }])],
  ['nothing at all', () => Buffer.alloc(0)],
  ['no end', (file) => formBody([file]).subarray(0, -BOUNDARY.length - 8)],
  ['half a file', (file) => formBody([file]).subarray(0, -BOUNDARY.length - 20)],
]

test.each(HALVES)('U12: a form with %s is rejected, and nothing of it is stored', async (_, form) => {
  const before = await keptAtRest()
  for (const [file, language] of [
    [captions, 'de'],
    [poster(), undefined],
  ] as const) {
    const answer = await send(form(file), language)
    expect([answer?.status, JSON.parse(answer?.text ?? '{}').code]).toEqual([400, 'invalid'])
  }
  await expect.poll(kept).toEqual(before)
})

test('E05: nothing is stored of a client that disconnects', async () => {
  const before = await keptAtRest()
  const whole = formBody([poster()])
  for (const cutAfterBytes of [10, Math.floor(whole.length / 2), whole.length - 10]) {
    expect(await send(whole, undefined, { cutAfterBytes })).toBeUndefined()
    expect(await send(formBody([captions]), 'de', { cutAfterBytes: 150 })).toBeUndefined()
  }
  await expect.poll(kept).toEqual(before)
})

test.each([
  { what: 'a poster', language: undefined, maxMib: 10 },
  { what: 'captions', language: 'de', maxMib: 5 },
])('U03: $what larger than $maxMib MiB is refused in words, and nothing of it is kept', async ({ language, maxMib }) => {
  const before = await keptAtRest()
  const tooLarge = formBody([{ name: 'file', fileName: 'x', body: Buffer.alloc(maxMib * 2 ** 20 + 1, 'x') }])
  for (const chunkBytes of [undefined, 65_536]) {
    const answer = await send(tooLarge, language, { chunkBytes })
    expect([answer?.status, JSON.parse(answer?.text ?? '{}')]).toMatchObject([
      413,
      { message: expect.stringContaining(`at most ${maxMib} MiB`), code: 'too-large' },
    ])
  }
  await expect.poll(kept).toEqual(before)
})

test('U03: captions of exactly the maximum size are accepted', async () => {
  const largest = SRT + ' '.repeat(5 * 2 ** 20 - SRT.length)
  expect((await addFile(reelgate.owner, videoId, largest, 'hi')).status).toBe(200)
})
