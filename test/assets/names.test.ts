import { afterAll, beforeAll, expect, test } from 'vitest'
import { contentDisposition } from '../../src/http/media/attachment.ts'
import { listFiles as listFolder } from '../data-folder.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { addFile, listFiles, SRT } from './sample-files.ts'

let reelgate: Reelgate & { remove(): Promise<void> }
beforeAll(async () => {
  reelgate = await startSharedReelgate()
})
afterAll(() => reelgate.remove())

/** One name to a file system that folds letter case, or writes accents its own way. */
const TWINS = ['café ß.mp4', 'cafe\u0301 ß.mp4', 'CAFÉ SS.MP4', 'café ß.mp4']

/** What the short-lived address of a file gives. */
async function download(videoId: string, fileId: number): Promise<{ text: string; disposition: string }> {
  const asked = await reelgate.owner.call('GET', `/api/videos/${videoId}/files/${fileId}`)
  const { redirect } = (await asked.json()) as { redirect: string }
  const response = await fetch(redirect)
  return { text: await response.text(), disposition: response.headers.get('content-disposition') ?? '' }
}

test('F05: uploads whose names a file system may treat as equal are stored separately, and downloaded by their own names', async () => {
  const { owner } = reelgate
  const videoIds = await Promise.all(
    TWINS.map(async (name, index) => {
      const issued = await owner.credentials('A twin')
      expect((await owner.send(issued, new Blob([`upload ${index}`]), name)).status).toBe(201)
      return issued.videoId
    }),
  )
  for (const [index, videoId] of videoIds.entries()) {
    const original = (await listFiles(owner, videoId)).find(({ type }) => type === 'original')
    expect(original?.name).toBe(TWINS[index])
    const { text, disposition } = await download(videoId, original?.id ?? 0)
    expect([text, disposition]).toEqual([`upload ${index}`, expect.stringContaining(encodeURIComponent(TWINS[index] ?? ''))])
  }
  await expectNamesOfOurs()
})

test('P-21: a file name with quotes and line breaks, as browsers encode them, has its quotes, in one line', async () => {
  const { owner } = reelgate
  const issued = await owner.credentials('Quoted')
  expect((await owner.send(issued, new Blob(['upload']), 'Lesson "one"\r\n100%25 %2F.mp4')).status).toBe(201)
  const original = (await listFiles(owner, issued.videoId)).find(({ type }) => type === 'original')
  expect(original?.name).toBe('Lesson "one" 100%25 %2F.mp4')
})

test('F05: captions of videos with twin titles, and of one video by twin names of their language, do not mix', async () => {
  const { owner } = reelgate
  const videoIds = await Promise.all(TWINS.map(async (title) => (await owner.credentials(title)).videoId))
  await Promise.all(
    videoIds.flatMap((videoId, index) =>
      ['de', 'pt-BR'].map((language) => addFile(owner, videoId, SRT.replace('first', `${index} ${language}`), language)),
    ),
  )
  for (const [index, videoId] of videoIds.entries()) {
    await addFile(owner, videoId, SRT.replace('first', `${index} last`), 'PT_br') // the same language, written otherwise
    const shown = (await listFiles(owner, videoId)).filter(({ type, enabled }) => type === 'caption' && enabled === 1)
    const texts = await Promise.all(shown.map(async ({ id }) => (await download(videoId, id)).text))
    expect(texts.sort()).toEqual([expect.stringContaining(`A ${index} de `), expect.stringContaining(`A ${index} last `)])
  }
  await expectNamesOfOurs()
})

/** On the disk are names that the server made, which differ whatever a file system makes of letter case. */
async function expectNamesOfOurs(): Promise<void> {
  const folders = ['sources', 'files', 'posters', 'segments', 'tmp']
  const names = (await Promise.all(folders.map((folder) => listFolder(reelgate, folder)))).flat()
  expect(names.length).toBeGreaterThanOrEqual(TWINS.length)
  expect(names.filter((name) => !/^[\w./-]+$/.test(name))).toEqual([])
  expect(new Set(names.map((name) => name.normalize('NFKC').toLowerCase())).size).toBe(names.length)
}

test.each([
  ['full-width quotes', '＂; filename=evil.exe; x=＂.mp4'],
  ['full-width backslashes', 'a＼＂b＼.mp4'],
  ['small ones', '﹨﹨a.mp4'],
  ['everything together', '\\"%;＂＼％；\r\n.mp4'],
])('X16: a file name with %s stays within its own quotes', (_, name) => {
  expect(contentDisposition(name)).toMatch(/^attachment; filename="[^"\\%;\r\n]+"; filename\*=UTF-8''[\w.~!#$&+^`|%-]+$/)
})
