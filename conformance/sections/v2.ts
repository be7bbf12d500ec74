import { check, type Section } from '../check.ts'
import { expectAnswer } from '../expect.ts'
import { MAX_PAGE } from '../installation.ts'
import { anyText, exactly, inOrder, is, oneOf, unixSeconds, videoId, whole } from '../shape.ts'
import { refusedV2 } from './errors.ts'

export const ENTITY = {
  id: videoId,
  title: anyText,
  description: anyText,
  file: anyText,
  length: whole,
  viewCount: whole,
  statusText: oneOf('queued', 'processing', 'ready'),
  date_added: unixSeconds,
}

export const XML = { 'content-type': /^application\/xml/ }
export const xmlWithRoot = (root: string) =>
  new RegExp(`^<\\?xml version="1\\.0" encoding="UTF-8"\\?>\\s*<${root}>.*</${root}>$`, 's')

const lengthIs = (length: number) => is(`${length} members`, (value) => Array.isArray(value) && value.length === length)

export const v2: Section = {
  section: 6,
  title: 'Earlier interface',
  checks: [
    check('OTP: exactly {"otp":"…"}, compact, cut by offset', async (at) => {
      const answer = await at.v2(`/otp?video=${await at.sharedReadyVideo()}`)
      expectAnswer(answer, {
        status: 200,
        headers: { 'content-type': /^application\/json/ },
        text: /^\{"otp":"[A-Za-z0-9]{64}"\}$/,
      })
    }),
    check('OTP: type=xml has an otp element', async (at) => {
      const answer = await at.v2(`/otp?video=${await at.sharedReadyVideo()}&type=xml`)
      expectAnswer(answer, {
        status: 200,
        headers: XML,
        text: /^<\?xml version="1\.0" encoding="UTF-8"\?>\s*<(\w+)><otp>[A-Za-z0-9]{64}<\/otp><\/\1>$/,
      })
    }),
    check('the key goes into an urlencoded or a multipart body', async (at) => {
      const headers: [string, string][] = [['Content-Type', 'multipart/form-data; boundary=b']]
      const body = `--b\r\nContent-Disposition: form-data; name="clientSecretKey"\r\n\r\n${at.key}\r\n--b--\r\n`
      expectAnswer(await at.send({ method: 'POST', url: `${at.base}/v2/videos`, headers, body }), { status: 200 })
      expectAnswer(await at.v2('/videos'), { status: 200 })
    }),
    check('paths are case-insensitive, and a slash at the end means nothing', async (at) => {
      for (const path of ['/VIDEOS', '/Videos/', '/videos/']) expectAnswer(await at.v2(path), { status: 200 })
      const headers: [string, string][] = [['Content-Type', 'application/x-www-form-urlencoded']]
      const answer = await at.send({ method: 'POST', url: `${at.base}/V2/Videos`, headers, body: `clientSecretKey=${at.key}` })
      expectAnswer(answer, { status: 200 })
    }),
    check('list: a bare array of entities', async (at) => {
      const title = at.newTitle()
      const { videoId: id } = await at.credentials(title)
      const answer = await at.v2(`/videos?${new URLSearchParams({ 'search[title]': title })}`)
      expectAnswer(answer, { status: 200, body: inOrder(exactly({ ...ENTITY, id, title, statusText: 'queued' })) })
    }),
    check('list: search by id, title and file, joined by AND, also as one JSON value', async (at) => {
      const title = at.newTitle()
      const { videoId: id } = await at.credentials(title)
      const found = { status: 200, body: inOrder({ id }) }
      const none = { status: 200, body: lengthIs(0) }
      const search = (query: Record<string, string>) => at.v2(`/videos?${new URLSearchParams(query)}`)
      expectAnswer(await search({ 'search[id]': id.slice(3) }), found)
      expectAnswer(await search({ 'search[title]': title.toUpperCase(), 'search[id]': id }), found)
      expectAnswer(await search({ 'search[title]': title, 'search[id]': '0'.repeat(32) }), none)
      expectAnswer(await search({ 'search[title]': title, 'search[file]': 'nothing.mp4' }), none)
      expectAnswer(await search({ search: JSON.stringify({ id, title }) }), found)
    }),
    check('list: 30 if no limit is given, clamped to 100, pages from 1', async (at) => {
      const title = await at.titleOf101Videos()
      const search = (query: Record<string, string>) =>
        at.v2(`/videos?${new URLSearchParams({ 'search[title]': `${title} `, ...query })}`)
      expectAnswer(await search({}), { status: 200, body: lengthIs(30) })
      expectAnswer(await search({ page: '4' }), { status: 200, body: lengthIs(MAX_PAGE + 1 - 90) })
      expectAnswer(await search({ limit: '100000' }), { status: 200, body: lengthIs(MAX_PAGE) })
      expectAnswer(await search({ page: '0' }), { status: 200, body: lengthIs(30) })
      expectAnswer(await search({ page: 'x' }), refusedV2(400))
    }),
    check('list: an empty type, page or limit, page=0 and limit=0 are as good as absent', async (at) => {
      const title = await at.titleOf101Videos()
      const first = await at.v2(`/videos?${new URLSearchParams({ 'search[title]': `${title} ` })}`)
      for (const query of ['type=', 'page=', 'limit=', 'page=0', 'limit=0']) {
        const answer = await at.v2(`/videos?${new URLSearchParams({ 'search[title]': `${title} ` })}&${query}`)
        expectAnswer(answer, { status: 200, headers: { 'content-type': /^application\/json/ }, text: first.text })
      }
    }),
    check('list: type=xml has the root videos', async (at) => {
      await at.sharedEmptyVideo()
      expectAnswer(await at.v2('/videos?type=xml'), { status: 200, headers: XML, text: xmlWithRoot('videos') })
    }),
    check('one: the entity, and in XML one element for each field', async (at) => {
      const id = await at.sharedReadyVideo()
      expectAnswer(await at.v2(`/video?id=${id}`), { status: 200, body: exactly({ ...ENTITY, id, statusText: 'ready' }) })
      const answer = await at.v2(`/video?id=${id}&type=xml`)
      expectAnswer(answer, { status: 200, headers: XML, text: xmlWithRoot('video') })
      for (const field of Object.keys(ENTITY)) expectAnswer(answer, { status: 200, text: new RegExp(`<${field}(>|/>)`) })
    }),
    check('XML drops the characters that XML 1.0 forbids', async (at) => {
      const title = `${at.newTitle()} a\u0001b<&>`
      const { videoId: id } = await at.credentials(title)
      const answer = await at.v2(`/video?id=${id}&type=xml`)
      expectAnswer(answer, { status: 200, headers: XML, text: /<title>[^<]* ab&lt;&amp;&gt;<\/title>/ })
    }),
    check('delete: action=delete in the body; 200, and the video is gone', async (at) => {
      const { videoId: id } = await at.credentials()
      expectAnswer(await at.v2(`/video?id=${id}`, { action: 'delete' }), { status: 200 })
      expectAnswer(await at.v2(`/video?id=${id}`), { status: 200, body: { error: 'No video found' } })
    }),
    check('delete: any other action is 400 and has no effect', async (at) => {
      const { videoId: id } = await at.credentials()
      for (const action of ['remove', 'DELETE', '']) expectAnswer(await at.v2(`/video?id=${id}`, { action }), refusedV2(400))
      expectAnswer(await at.v2(`/video?id=${id}`), { status: 200, body: { id } })
    }),
  ],
}
