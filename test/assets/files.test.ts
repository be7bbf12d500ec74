import { readFile } from 'node:fs/promises'
import { XMLParser } from 'fast-xml-parser'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { untilFinished } from '../data-folder.ts'
import { type Reelgate, startSharedReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'
import { addFile, colorOf, type FileBody, listFiles, makeImage, makeLongVideo, SRT } from './sample-files.ts'

let reelgate: Reelgate & { remove(): Promise<void> }
let videoId: string
beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeLongVideo(), title: 'A "video" & more' })
  videoId = reelgate.videoId
})
afterAll(() => reelgate.remove())

const json = async <T>(response: Response | Promise<Response>): Promise<T> => (await (await response).json()) as T
const typesOf = (files: readonly FileBody[]) => files.map(({ type }) => type).sort()

/** A video whose video has not come. */
async function waitingVideo(): Promise<string> {
  return (await reelgate.owner.credentials('It will come')).videoId
}

describe('the files of a video', () => {
  test('are its upload, its renditions and its posters, each with every field of the contract', async () => {
    const files = await listFiles(reelgate.owner, videoId)
    expect(typesOf(files)).toEqual(['audio', 'mobile', 'mobile', 'original', 'poster', 'poster'])
    const original = files.find(({ type }) => type === 'original')
    expect(original).toMatchObject({
      name: 'video.mp4',
      format: 'mp4',
      isDownloadable: 1,
      isDeletable: 0,
      width: 640,
      height: 360,
    })
    for (const file of files) {
      expect(file).toEqual({
        id: expect.any(Number),
        name: expect.any(String),
        size: expect.any(Number),
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        enabled: 1,
        format: expect.any(String),
        type: expect.any(String),
        width: expect.any(Number),
        height: expect.any(Number),
        bitrate: expect.any(Number),
        encryption_type: expect.any(String),
        video_codec: expect.any(String),
        audio_codec: expect.any(String),
        lang: '',
        isDownloadable: expect.any(Number),
        isDeletable: expect.any(Number),
      })
      expect(file.id).toBeGreaterThan(0)
      expect(file.size).toBeGreaterThan(0)
      expect(file.isDownloadable).toBe(['original', 'poster'].includes(file.type) ? 1 : 0)
    }
  })

  test('have ids that no other file of the installation has, and keep them', async () => {
    const other = await waitingVideo()
    await addFile(reelgate.owner, other, await makeImage('640x360'))
    await addFile(reelgate.owner, other, SRT, 'en')
    const before = await listFiles(reelgate.owner, videoId)
    const ids = [...before, ...(await listFiles(reelgate.owner, other))].map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    await reelgate.kill()
    await reelgate.restart()
    expect(await listFiles(reelgate.owner, videoId)).toEqual(before)
  })

  test('have seven fields each in the v2 API, in JSON and in XML', async () => {
    const ask = (query: string) =>
      fetch(`${reelgate.url}/v2/files?${query}`, {
        method: 'POST',
        body: new URLSearchParams({ clientSecretKey: reelgate.owner.apiKey }),
      })
    const files = await listFiles(reelgate.owner, videoId)
    const wanted = files.map(({ id, name, type, size, width, height, isDownloadable }) => ({
      id,
      name,
      type,
      size,
      width,
      height,
      downloadable: isDownloadable === 1,
    }))
    expect(await json(ask(`video=${videoId}`))).toEqual(wanted)
    expect(await json(ask(`id=${videoId}`))).toEqual(wanted)
    const xml = await (await ask(`video=${videoId}&type=xml`)).text()
    expect(new XMLParser().parse(xml).files.file).toEqual(wanted)
    expect(await json(ask(`id=${'0'.repeat(32)}`))).toEqual({ error: 'No video found' })
  })

  test('F02: are not shown, changed or deleted for another account', async () => {
    const stranger = await reelgate.newOwner('A stranger')
    const [file] = await listFiles(reelgate.owner, videoId)
    const calls = [
      stranger.call('GET', `/api/videos/${videoId}/files`),
      stranger.call('DELETE', `/api/videos/${videoId}/files/${file?.id}`),
      addFile(stranger, videoId, await makeImage('64x64')),
      addFile(stranger, videoId, SRT, 'en'),
    ]
    for (const call of calls) {
      const response = await call
      expect([response.status, (await json<{ code: string }>(response)).code]).toEqual([404, 'not-found'])
    }
  })

  test('F02: an id that is none of its files is 404, and the original and renditions cannot be deleted', async () => {
    const strange = ['0', '-1', '9223372036854775808', '18446744073709551616', '1e3', '1.5', 'x', '%00', '999999']
    for (const id of strange) {
      const response = await reelgate.owner.call('DELETE', `/api/videos/${videoId}/files/${id}`)
      expect([id, response.status]).toEqual([id, 404])
    }
    for (const { id } of (await listFiles(reelgate.owner, videoId)).filter(({ isDeletable }) => isDeletable === 0)) {
      expect((await reelgate.owner.call('DELETE', `/api/videos/${videoId}/files/${id}`)).status).toBe(409)
    }
  })
})

describe('a poster', () => {
  test.each(['png', 'mjpeg', 'libwebp'])('made from %s is drawn in both sizes and becomes the main one', async (format) => {
    const id = await waitingVideo()
    const added = await json<Record<string, unknown>[]>(addFile(reelgate.owner, id, await makeImage('1600x900', format, 'lime')))
    const size = (video_width: number, video_height: number) => ({
      id: expect.any(Number),
      format: 'jpeg',
      video_width,
      video_height,
      time: expect.stringMatching(/Z$/),
      size: expect.any(Number),
    })
    expect(added).toEqual([size(853, 480), size(427, 240)])
    const video = await reelgate.owner.video(id)
    expect(video.posters).toHaveLength(2)
    const jpeg = Buffer.from(await (await fetch(video.poster)).arrayBuffer())
    const [red = 255, green = 0, blue = 255] = await colorOf(jpeg)
    expect([red < 20, green > 235, blue < 20]).toEqual([true, true, true])
  })

  test('replaces older ones, which are shown again when it is deleted', async () => {
    const { owner } = reelgate
    const id = await waitingVideo()
    const [first] = await json<{ id: number }[]>(addFile(owner, id, await makeImage('640x360')))
    const second = await json<{ id: number }[]>(addFile(owner, id, await makeImage('640x360', 'png', 'blue')))
    const enabled = async () => (await listFiles(owner, id)).filter((file) => file.enabled === 1).map((file) => file.id)
    expect(await enabled()).toEqual(second.map((file) => file.id))
    for (const file of second)
      expect(await json(owner.call('DELETE', `/api/videos/${id}/files/${file.id}`))).toEqual({ message: 'Deleted' })
    expect(await enabled()).toHaveLength(2)
    expect(await enabled()).toContain(first?.id)
  })

  test('that is added while the video is queued is not replaced by the video’s own', async () => {
    const { owner } = reelgate
    const credentials = await owner.credentials('Poster first')
    const id = credentials.videoId
    const added = await json<{ id: number }[]>(addFile(owner, id, await makeImage('640x360')))
    await owner.send(credentials, new Blob([await readFile(await makeVideo())]))
    await owner.until(id, 'ready')
    await untilFinished(reelgate, id)
    const posters = (await listFiles(owner, id)).filter(({ type }) => type === 'poster')
    expect(posters.filter(({ enabled }) => enabled === 1).map((file) => file.id)).toEqual(added.map((file) => file.id))
    expect(posters).toHaveLength(4)
    const total = readRows<{ size: number }>(
      reelgate,
      'select (select sum(size_bytes) from file where video_id = ?) + (select sum(size_bytes) from segment where video_id = ?) + (select size_bytes from source where video_id = ?) as size',
      id,
      id,
      id,
    )
    expect((await owner.video(id)).totalSizeBytes).toBe(total[0]?.size)
  })
})

describe('captions', () => {
  test('are stored by language; a second file in a language replaces the first', async () => {
    const { owner } = reelgate
    const id = await waitingVideo()
    const first = await json<{ id: number }>(addFile(owner, id, SRT, 'EN'))
    expect(first).toEqual({ id: expect.any(Number), time: expect.stringMatching(/Z$/), size: '1 kB', lang: 'en' })
    await addFile(owner, id, SRT, 'pt_BR')
    const again = await json<{ id: number }>(addFile(owner, id, SRT.replace('first', 'second'), 'en'))
    const captions = (await listFiles(owner, id)).filter(({ type }) => type === 'caption')
    expect(captions.map(({ id: file, name, lang, enabled }) => ({ id: file, name, lang, enabled }))).toEqual([
      { id: first.id, name: 'It will come [EN].vtt', lang: 'en', enabled: 0 },
      { id: expect.any(Number), name: 'It will come [PT-BR].vtt', lang: 'pt-br', enabled: 1 },
      { id: again.id, name: 'It will come [EN].vtt', lang: 'en', enabled: 1 },
    ])
  })

  test('and four posters added concurrently are all there while the video is queued', async () => {
    const { owner } = reelgate
    const id = await waitingVideo()
    const image = await makeImage('640x360')
    const languages = ['en', 'de', 'fr', 'es', 'it', 'pt', 'hi', 'ja']
    const answers = await Promise.all([
      ...languages.map((language) => addFile(owner, id, SRT, language)),
      ...Array.from({ length: 4 }, () => addFile(owner, id, image)),
    ])
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
    await reelgate.kill()
    await reelgate.restart()
    const files = await listFiles(owner, id)
    expect(files.filter(({ type, enabled }) => type === 'caption' && enabled === 1)).toHaveLength(8)
    expect(files.filter(({ type }) => type === 'poster')).toHaveLength(8)
    expect(files.filter(({ type, enabled }) => type === 'poster' && enabled === 1)).toHaveLength(2)
  })
})

test('captions sent without a language are rejected with that reason, not as an image', async () => {
  const { videoId } = await reelgate.owner.credentials('A video')
  const form = new FormData()
  form.set('file', new Blob([SRT]), 'subtitles.SRT')
  const headers = { Authorization: `Apisecret ${reelgate.owner.apiKey}` }
  const answer = await fetch(`${reelgate.url}/api/videos/${videoId}/files`, { method: 'POST', headers, body: form })
  expect([answer.status, ((await answer.json()) as { message: string }).message]).toEqual([
    400,
    expect.stringContaining('?language=en'),
  ])
})

test('a broken SRT is rejected with the line that is wrong, and nothing is stored', async () => {
  const { owner } = reelgate
  const { videoId } = await owner.credentials('A video')
  const answer = await addFile(owner, videoId, `${SRT}\r\n2\r\n00:00:03,000 -> 00:00:04,000\r\nA second\r\n`, 'en')
  expect([answer.status, ((await answer.json()) as { message: string }).message]).toEqual([
    400,
    expect.stringMatching(/^Line 6 of the captions is "00:00:03,000 -> 00:00:04,000", but times are expected/),
  ])
  expect(await listFiles(owner, videoId)).toEqual([])
})
