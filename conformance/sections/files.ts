import { check, type Section } from '../check.ts'
import { Deviation, expectAnswer, expectValue } from '../expect.ts'
import type { Answer } from '../http.ts'
import type { Installation } from '../installation.ts'
import {
  anyNumber,
  anyText,
  exactly,
  inOrder,
  is,
  isoTime,
  isRecord,
  listOf,
  oneOf,
  positive,
  sentence,
  trueOrFalse,
  webAddress,
  whole,
  zeroOrOne,
} from '../shape.ts'
import { CAPTIONS_SRT, CAPTIONS_VTT, PICTURE, VIDEO } from '../test-video.ts'
import { NO_VIDEO, refused } from './errors.ts'
import { XML, xmlWithRoot } from './v2.ts'

const UNKNOWN_ID = '0123456789abcdef0123456789abcdef'
const TYPE = oneOf('original', 'poster', 'desktop', 'mobile', 'audio', 'caption', 'mp4')

const FILE = {
  id: positive,
  name: anyText,
  size: whole,
  time: isoTime,
  enabled: zeroOrOne,
  format: anyText,
  type: TYPE,
  width: whole,
  height: whole,
  bitrate: whole,
  encryption_type: anyText,
  video_codec: anyText,
  audio_codec: anyText,
  lang: anyText,
  isDownloadable: zeroOrOne,
  isDeletable: zeroOrOne,
}
const CAPTION = exactly({ id: positive, time: isoTime, size: /^\d+ kB$/, lang: anyText })
const POSTERS = listOf(
  exactly({ id: positive, format: anyText, video_height: positive, video_width: positive, time: isoTime, size: positive }),
)

type File = { id: number; type: string; name: string; enabled: number; isDownloadable: number; width: number; height: number }

/** @param path the video's id, with the query */
export function addFile(at: Installation, path: string, fileName: string, bytes: Buffer | string): Promise<Answer> {
  const [videoId, query = ''] = path.split('?')
  return at.api('POST', `/videos/${videoId}/files${query && `?${query}`}`, { parts: [['file', { fileName, bytes }]] })
}

/** As far as every track has it: others have `language`, `progress`, `differenceS`, `error`. */
const AUDIO_TRACK = {
  ...{ id: positive, name: anyText, default: trueOrFalse, added: trueOrFalse },
  state: oneOf('waiting', 'encoding', 'ready', 'failed'),
}
type AudioTrack = { id: number; name: string; default: boolean; state: string; added: boolean }

function readTracks(answer: Answer): AudioTrack[] {
  expectAnswer(answer, { status: 200, body: exactly({ tracks: listOf(AUDIO_TRACK) }) })
  return (answer.body as { tracks: AudioTrack[] }).tracks
}

function addAudio(at: Installation, path: string): Promise<Answer> {
  return at.api('POST', path, { parts: [['file', { fileName: 'two.mp4', bytes: VIDEO }]] })
}

async function listFiles(at: Installation, videoId: string): Promise<File[]> {
  const answer = await at.api('GET', `/videos/${videoId}/files`)
  expectAnswer(answer, { status: 200, body: listOf(exactly(FILE)) })
  return answer.body as File[]
}

/** The files of the shared video when all of them are there. */
async function filesOfVideo(at: Installation): Promise<File[]> {
  const id = await at.sharedReadyVideo()
  return at.until(
    'a video with its posters and renditions',
    () => listFiles(at, id),
    (files) => ['original', 'poster', 'mobile', 'audio'].every((type) => files.some((file) => file.type === type)),
  )
}

export const files: Section = {
  section: 3,
  title: 'Current interface: files',
  checks: [
    check('files: a bare array of File, with every field', async (at) => {
      const found = await filesOfVideo(at)
      expectValue(found.length > 0, true, 'files of a video')
    }),
    check('files: originals, posters and captions are downloadable, renditions and audio are not', async (at) => {
      for (const { type, isDownloadable } of await filesOfVideo(at))
        expectValue(isDownloadable, ['original', 'poster', 'caption', 'mp4'].includes(type) ? 1 : 0, `isDownloadable of ${type}`)
    }),
    check('files: desktop has a short side above 480, mobile the others', async (at) => {
      for (const { type, width, height } of await filesOfVideo(at))
        if (type === 'desktop' || type === 'mobile')
          expectValue(type, Math.min(width, height) > 480 ? 'desktop' : 'mobile', `type of ${width}×${height}`)
    }),
    check('poster: an array, one for each size; older posters are no longer enabled', async (at) => {
      const { videoId } = await at.credentials()
      expectAnswer(await addFile(at, videoId, 'one.png', PICTURE), { status: 200, body: POSTERS })
      const before = await listFiles(at, videoId)
      expectAnswer(await addFile(at, videoId, 'two.png', PICTURE), { status: 200, body: POSTERS })
      for (const { id, enabled } of await listFiles(at, videoId))
        expectValue(enabled, before.some((old) => old.id === id) ? 0 : 1, `enabled of ${id}`)
    }),
    check('caption: WebVTT and SRT are {id, time, size:"N kB", lang}, named title [EN].vtt', async (at) => {
      const { videoId } = await at.credentials()
      expectAnswer(await addFile(at, `${videoId}?language=en`, 'a.srt', CAPTIONS_SRT), { status: 200, body: CAPTION })
      expectAnswer(await addFile(at, `${videoId}?language=de`, 'b.vtt', CAPTIONS_VTT), { status: 200, body: CAPTION })
      const names = (await listFiles(at, videoId)).filter(({ type }) => type === 'caption').map(({ name }) => name)
      for (const language of ['EN', 'DE'])
        if (!names.some((name) => name.includes(`[${language}]`) && name.endsWith('.vtt')))
          throw new Deviation(`name: expected … [${language}].vtt, got ${names.join(', ')}`)
    }),
    check('storyboard: no pictures before the video, and every field', async (at) => {
      const { videoId } = await at.credentials()
      const shape = { intervalS: anyNumber, count: 0, width: 0, height: 0, columns: 0, rows: 0, sheets: listOf(webAddress) }
      expectAnswer(await at.api('GET', `/videos/${videoId}/storyboard`), { status: 200, body: exactly(shape) })
    }),
    check('poster candidates: none before the video', async (at) => {
      const { videoId } = await at.credentials()
      const candidate = exactly({ time: anyNumber, width: anyNumber, height: anyNumber, url: webAddress })
      expectAnswer(await at.api('GET', `/videos/${videoId}/poster-candidates`), {
        status: 200,
        body: exactly({ candidates: listOf(candidate) }),
      })
    }),
    check('chapters: replaced as a whole, sorted, and deleted; WebVTT for others', async (at) => {
      const path = `/videos/${await at.sharedReadyVideo()}/chapters`
      const [first, second] = [
        { startS: 0, title: 'One' },
        { startS: 1, title: 'Two' },
      ]
      const stored = exactly({ language: 'en', chapters: inOrder(first, second) })
      const put = await at.api('PUT', path, { json: { language: 'en', chapters: [second, first] } })
      expectAnswer(put, { status: 200, body: stored })
      expectAnswer(await at.api('GET', path), { status: 200, body: stored })
      expectAnswer(await at.api('GET', `${path}?format=vtt`), { status: 200, text: /^WEBVTT\n.*One\n.*Two\n/s })
      expectAnswer(await at.api('PUT', path, { json: { chapters: [] } }), { status: 200, body: { chapters: inOrder() } })
      expectAnswer(await at.api('PUT', path, { json: { chapters: [{ startS: -1, title: 'x' }] } }), refused(400, sentence))
    }),
    check(
      'audio: the tracks of a video, of which one is renamed; one that is added plays once it is encoded, and is removed',
      async (at) => {
        const path = `/videos/${await at.sharedReadyVideo()}/audio`
        const tracksOf = async () => readTracks(await at.api('GET', path))
        const [own] = await tracksOf()
        const renamed = { status: 200, body: exactly({ tracks: inOrder({ id: own?.id ?? 0, name: 'First', language: 'en' }) }) }
        expectAnswer(await at.api('PUT', `${path}/${own?.id}`, { json: { name: 'First', language: 'EN' } }), renamed)
        const added = readTracks(await addAudio(at, `${path}?language=fr&name=Two`)).at(-1)
        expectValue(added?.name, 'Two', 'the name of the added track')
        expectValue(added?.added, true, 'whether it was added')
        const all = await at.until('the added audio track', tracksOf, (tracks) => tracks.every(({ state }) => state === 'ready'))
        expectValue(all.length, 2, 'audio tracks')
        expectAnswer(await at.api('DELETE', `${path}/${own?.id}`), refused(409, sentence))
        expectAnswer(await at.api('DELETE', `${path}/${added?.id}`), renamed)
        expectAnswer(await at.api('DELETE', `${path}/${added?.id}`), refused(404))
        expectAnswer(await at.api('PUT', `${path}/${own?.id}`, { json: { name: '', language: '' } }), { status: 200 })
      },
    ),
    check('audio: without a language 400; to a video that is not ready 409; of an unknown one 404', async (at) => {
      const { videoId } = await at.credentials()
      expectAnswer(await addAudio(at, `/videos/${videoId}/audio`), refused(400, sentence))
      expectAnswer(await addAudio(at, `/videos/${videoId}/audio?language=fr`), refused(409, sentence))
      for (const method of ['GET', 'POST'] as const) {
        const path = `/videos/${UNKNOWN_ID}/audio?language=fr`
        expectAnswer(method === 'GET' ? await at.api('GET', path) : await addAudio(at, path), refused(404, 'Video not found'))
      }
    }),
    check('transcription: a server without a program for it answers 409, another the captions that it makes', async (at) => {
      const id = await at.sharedReadyVideo()
      const answer = await at.api('POST', `/videos/${id}/files`, { json: { type: 'caption', language: 'qaa' } })
      if (answer.status === 409) return expectAnswer(answer, refused(409, sentence))
      expectAnswer(answer, { status: 200, body: { type: 'caption', lang: 'qaa', automatic: 1, progress: anyNumber } })
      const fileId = isRecord(answer.body) ? answer.body.id : ''
      expectAnswer(await at.api('DELETE', `/videos/${id}/files/${fileId}`), { status: 200 })
    }),
    check('posters and captions are taken right behind the video, while it is Queued', async (at) => {
      const id = await at.uploadedVideo()
      expectAnswer(await addFile(at, `${id}?language=fr`, 'a.srt', CAPTIONS_SRT), { status: 200, body: CAPTION })
      expectAnswer(await addFile(at, id, 'one.png', PICTURE), { status: 200, body: POSTERS })
    }),
    check('what is neither a picture nor captions is refused', async (at) => {
      const { videoId } = await at.credentials()
      for (const query of ['', '?language=en'])
        expectAnswer(await addFile(at, `${videoId}${query}`, 'letter.txt', 'This is a letter.'), refused(400, sentence))
    }),
    check('get: {redirect} to the bytes, without a key', async (at) => {
      const original = (await filesOfVideo(at)).find(({ type }) => type === 'original')
      const answer = await at.api('GET', `/videos/${await at.sharedReadyVideo()}/files/${original?.id}`)
      expectAnswer(answer, { status: 200, body: exactly({ redirect: webAddress }) })
      const { redirect } = answer.body as { redirect: string }
      const range = await at.send({ method: 'GET', url: redirect, headers: [['Range', 'bytes=4-7']] })
      expectAnswer(range, { status: 206, text: VIDEO.toString('latin1', 4, 8), headers: { 'content-disposition': /filename/ } })
    }),
    check(
      'get: an original needs a key with downloader: one with viewer alone is 403',
      async (at) => {
        const original = (await filesOfVideo(at)).find(({ type }) => type === 'original')
        const path = `/videos/${await at.sharedReadyVideo()}/files/${original?.id}`
        expectAnswer(await at.api('GET', path, { key: at.viewerKey }), refused(403))
      },
      'permission-keys',
    ),
    check('get: a rendition is not downloadable', async (at) => {
      const rendition = (await filesOfVideo(at)).find(({ type }) => type === 'mobile')
      const answer = await at.api('GET', `/videos/${await at.sharedReadyVideo()}/files/${rendition?.id}`)
      expectAnswer(answer, refused(403))
    }),
    check('delete: {"message":"Deleted"}, and it is gone', async (at) => {
      const { videoId } = await at.credentials()
      const added = await addFile(at, `${videoId}?language=en`, 'a.srt', CAPTIONS_SRT)
      const path = `/videos/${videoId}/files/${isRecord(added.body) ? added.body.id : ''}`
      expectAnswer(await at.api('DELETE', path), { status: 200, body: exactly({ message: 'Deleted' }) })
      expectAnswer(await at.api('GET', path), refused(404))
    }),
    check(
      'mp4: {"type":"mp4"} has one made of a finished video; it is downloadable then, and the same when it is asked for again',
      async (at) => {
        const id = await at.sharedReadyVideo()
        const ask = () => at.api('POST', `/videos/${id}/files`, { json: { type: 'mp4' } })
        const asked = await at.until('every rendition of the video', ask, ({ status }) => status !== 409)
        expectAnswer(asked, { status: 200, body: exactly(FILE) })
        const findMp4 = async () => (await listFiles(at, id)).filter(({ type }) => type === 'mp4')
        const found = await at.until('the MP4', findMp4, (files) => files.every(({ isDownloadable }) => isDownloadable === 1))
        expectValue(found.length, 1, 'MP4s of the video')
        expectAnswer(await ask(), {
          status: 200,
          body: is('the same file', (body) => isRecord(body) && body.id === found[0]?.id),
        })
        expectAnswer(await at.api('GET', `/videos/${id}/files/${found[0]?.id}`), {
          status: 200,
          body: exactly({ redirect: webAddress }),
        })
      },
    ),
    check('mp4: before every rendition is there 409', async (at) => {
      const { videoId } = await at.credentials()
      expectAnswer(await at.api('POST', `/videos/${videoId}/files`, { json: { type: 'mp4' } }), refused(409, sentence))
    }),
    check('an unknown video is 404 "Video not found", an unknown file 404', async (at) => {
      expectAnswer(await at.api('GET', `/videos/${UNKNOWN_ID}/files`), refused(404, 'Video not found'))
      expectAnswer(await addFile(at, UNKNOWN_ID, 'one.png', PICTURE), refused(404, 'Video not found'))
      expectAnswer(await at.api('GET', `/videos/${await at.sharedReadyVideo()}/files/999999999`), refused(404))
      expectAnswer(await at.api('DELETE', `/videos/${await at.sharedReadyVideo()}/files/999999999`), refused(404))
    }),
    check(
      'another account’s files are not seen',
      async (at) =>
        expectAnswer(
          await at.api('GET', `/videos/${await at.sharedReadyVideo()}/files`, { key: at.otherKey }),
          refused(404, 'Video not found'),
        ),
      'other-key',
    ),
    check('meta: {title, duration, aspectRatio, posters}, without a key', async (at) => {
      await filesOfVideo(at)
      const answer = await at.api('GET', `/meta/${await at.sharedReadyVideo()}`, { key: null })
      const posters = listOf(exactly({ url: webAddress, height: positive, width: positive }))
      expectAnswer(answer, {
        status: 200,
        body: exactly({ title: anyText, duration: anyNumber, aspectRatio: anyNumber, posters }),
      })
    }),
    check('meta: of a video that is not public, or unknown, 404', async (at) => {
      const { videoId } = await at.credentials()
      expectAnswer(await at.api('POST', `/videos/${videoId}`, { json: { public: 0 } }), { status: 200 })
      expectAnswer(await at.api('GET', `/meta/${videoId}`, { key: null }), refused(404))
      expectAnswer(await at.api('GET', `/meta/${UNKNOWN_ID}`, { key: null }), refused(404))
    }),
  ],
}

const DONE = { status: 200, text: '{"message":"Done"}' }

export const filesV2: Section = {
  section: 6,
  title: 'Earlier interface: files, upload policy, tags',
  checks: [
    check('files: a bare array of exactly id, name, type, size, width, height, downloadable; by ?video= and ?id=', async (at) => {
      const known = await filesOfVideo(at)
      const row = exactly({
        id: positive,
        name: anyText,
        type: TYPE,
        size: whole,
        width: whole,
        height: whole,
        downloadable: trueOrFalse,
      })
      for (const name of ['video', 'id']) {
        const answer = await at.v2(`/files?${name}=${await at.sharedReadyVideo()}`)
        expectAnswer(answer, { status: 200, body: listOf(row) })
        expectValue((answer.body as unknown[]).length, known.length, 'files')
      }
    }),
    check('files: type=xml has the root files', async (at) => {
      expectAnswer(await at.v2(`/files?video=${await at.sharedReadyVideo()}&type=xml`), {
        status: 200,
        headers: XML,
        text: xmlWithRoot('files'),
      })
    }),
    check('files: an unknown video is 200 {"error":"No video found"}', async (at) => {
      expectAnswer(await at.v2(`/files?video=${UNKNOWN_ID}`), NO_VIDEO)
    }),
    check(
      'uploadPolicy: the policy fields, video_id, upload_link and upload_link_secure, with which a video is sent',
      async (at) => {
        const title = at.newTitle()
        const answer = await at.v2('/uploadPolicy', { title })
        const link = is('the address of the form', (value) => typeof value === 'string' && /\/upload$/.test(value))
        expectAnswer(answer, { status: 200, body: { video_id: /^[0-9a-f]{32}$/, upload_link: link, upload_link_secure: link } })
        const {
          video_id: videoId,
          upload_link: uploadLink,
          upload_link_secure: _,
          ...fields
        } = answer.body as Record<string, string>
        at.removeVideo(String(videoId))
        const address = String(uploadLink)
        const sent = await at.upload({
          videoId: String(videoId),
          uploadLink: address.startsWith('http') ? address : `${at.base}/upload`,
          fields,
        })
        expectAnswer(sent, { status: 201 })
        expectAnswer(await at.api('GET', `/videos/${videoId}`), { status: 200, body: { title } })
      },
    ),
    check('uploadPolicy: type=xml has an element for each field', async (at) => {
      const answer = await at.v2('/uploadPolicy?type=xml', { title: at.newTitle() })
      const [, videoId = ''] = /<video_id>([0-9a-f]{32})<\/video_id>/.exec(answer.text) ?? []
      at.removeVideo(videoId)
      expectAnswer(answer, { status: 200, headers: XML, text: /^<\?xml version="1\.0" encoding="UTF-8"\?>\s*<(\w+)>.*<\/\1>$/s })
      for (const field of ['policy', 'key', 'x-amz-signature', 'video_id', 'upload_link', 'upload_link_secure'])
        expectAnswer(answer, { status: 200, text: new RegExp(`<${field}>[^<]+</${field}>`) })
    }),
    check(
      'uploadPolicy: off for the account is 403',
      async (at) => {
        expectAnswer(await at.v2('/uploadPolicy', { title: 'x' }, at.offKey), { status: 403, body: exactly({ error: sentence }) })
      },
      'off-key',
    ),
    check('tags: added and removed, {"message":"Done"}, as tags[], with commas and as JSON', async (at) => {
      const { videoId } = await at.credentials()
      const tag = `${at.titlePrefix}-v2`
      const forms: Record<string, string>[] = [
        { 'videos[]': videoId, 'tags[]': tag },
        { videos: `${videoId}`, tags: `${tag},${tag}-b` },
        { videos: JSON.stringify([videoId]), tags: JSON.stringify([tag]) },
        { 'videos[0]': videoId, 'tags[0]': tag, 'tags[1]': `${tag}-b` },
      ]
      for (const form of forms) {
        expectAnswer(await at.v2('/tags/add', form), DONE)
        const has = is(`"${tag}" among them`, (tags) => Array.isArray(tags) && tags.includes(tag))
        expectAnswer(await at.api('GET', `/videos/${videoId}`), { status: 200, body: { tags: has } })
        expectAnswer(await at.v2('/tags/remove', form), DONE)
        const hasNot = is(`without "${tag}"`, (tags) => Array.isArray(tags) && !tags.includes(tag))
        expectAnswer(await at.api('GET', `/videos/${videoId}`), { status: 200, body: { tags: hasNot } })
      }
    }),
    check('tags: in the query too, PHP-style and repeated', async (at) => {
      const { videoId } = await at.credentials()
      const [a, b] = [`${at.titlePrefix}-query-a`, `${at.titlePrefix}-query-b`]
      for (const names of [
        ['videos[]', 'tags[]'],
        ['videos', 'tags'],
      ]) {
        const query = new URLSearchParams([
          [names[0] ?? '', videoId],
          [names[1] ?? '', a],
          [names[1] ?? '', b],
        ])
        expectAnswer(await at.v2(`/tags/add?${query}`), DONE)
        expectAnswer(await at.api('GET', `/videos/${videoId}`), { status: 200, body: { tags: inOrder(a, b) } })
        expectAnswer(await at.v2(`/tags/remove?${query}`), DONE)
        expectAnswer(await at.api('GET', `/videos/${videoId}`), { status: 200, body: { tags: inOrder() } })
      }
    }),
    check('tags/search: in pages', async (at) => {
      const ids = [(await at.credentials()).videoId, (await at.credentials()).videoId]
      const tag = `${at.titlePrefix}-paged`
      expectAnswer(await at.api('POST', '/videos/tags', { json: { videos: ids, tags: [tag] } }), { status: 200 })
      const [older = '', newer = ''] = ids
      const page = (page: string) => at.v2(`/tags/search?page=${page}&limit=1`, { 'tags[]': tag })
      expectAnswer(await page('1'), { status: 200, body: inOrder({ id: newer }) })
      expectAnswer(await page('2'), { status: 200, body: inOrder({ id: older }) })
      expectAnswer(await page('3'), { status: 200, body: inOrder() })
    }),
    check('tags/search: the videos that carry all of them, as the list', async (at) => {
      const { videoId } = await at.credentials()
      const tag = `${at.titlePrefix}-searched`
      expectAnswer(await at.v2('/tags/add', { 'videos[]': videoId, 'tags[]': tag }), DONE)
      const one = is('this video alone', (rows) => Array.isArray(rows) && rows.length === 1 && rows[0].id === videoId)
      expectAnswer(await at.v2('/tags/search', { 'tags[]': tag }), { status: 200, body: one })
      const none = is('empty', (rows) => Array.isArray(rows) && rows.length === 0)
      expectAnswer(await at.v2('/tags/search', { tags: `${tag},${tag}-no` }), { status: 200, body: none })
    }),
  ],
}
