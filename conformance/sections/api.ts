import { check, type Section } from '../check.ts'
import { Deviation, expectAnswer, expectValue } from '../expect.ts'
import { type Installation, MAX_PAGE } from '../installation.ts'
import {
  anyNumber,
  anyText,
  exactly,
  inOrder,
  is,
  isRecord,
  listOf,
  oneOf,
  otp,
  positive,
  unixSeconds,
  videoId,
  webAddress,
  whole,
  without,
  zeroOrOne,
} from '../shape.ts'
import { PICTURE } from '../test-video.ts'
import { refused } from './errors.ts'
import { addFile } from './files.ts'

const VIDEO = {
  id: videoId,
  title: anyText,
  description: anyText,
  upload_time: unixSeconds,
  length: anyNumber,
  status: oneOf('PRE-Upload', 'Queued', 'Processing', 'ready', 'Encoding error', 'Not a media file'),
  posters: listOf({ width: positive, height: positive, posterUrl: webAddress }),
  tags: listOf(anyText),
  poster: anyText,
  public: zeroOrOne,
  ipGeoRules: anyText,
  whitelisthref: anyText,
  totalSizeBytes: whole,
  folderId: oneOf('root', videoId),
}

const UNKNOWN_ID = '0123456789abcdef0123456789abcdef'
const DONE = { status: 200, body: exactly({ message: 'Done' }) }

/** Videos without a source, oldest first, whose titles a search finds. */
async function newVideos(at: Installation, count: number): Promise<{ ids: string[]; search: string }> {
  const search = at.newTitle()
  const ids: string[] = []
  for (let n = 0; n < count; n++) ids.push((await at.credentials(`${search} n${n}`)).videoId)
  return { ids, search }
}

/** A list of these videos, in this order. */
function rows(count: number, ids: readonly string[]) {
  return { status: 200, body: exactly({ count, rows: inOrder(...ids.map((id) => ({ id }))) }) }
}

const listed = (at: Installation, query: Record<string, string>) => at.api('GET', `/videos?${new URLSearchParams(query)}`)

export const list: Section = {
  section: 3,
  title: 'Current interface: list',
  checks: [
    check('list: {count, rows} of videos with all their fields', async (at) => {
      await at.sharedReadyVideo()
      expectAnswer(await at.api('GET', '/videos'), { status: 200, body: exactly({ count: positive, rows: listOf(VIDEO) }) })
    }),
    check('list: newest first, the same order in pages, count of all', async (at) => {
      const { ids, search } = await newVideos(at, 3)
      const newestFirst = ids.toReversed()
      expectAnswer(await listed(at, { q: search }), rows(3, newestFirst))
      expectAnswer(await listed(at, { q: search, limit: '2' }), rows(3, newestFirst.slice(0, 2)))
      expectAnswer(await listed(at, { q: search, limit: '2', page: '2' }), rows(3, newestFirst.slice(2)))
      expectAnswer(await listed(at, { q: search, limit: '2', page: '9' }), rows(3, []))
    }),
    check('list: limit is 20 if absent, and clamped to the page limit of the account, 40 to 100, never refused', async (at) => {
      const search = await at.titleOf101Videos()
      const countRows = async (query: Record<string, string>) => {
        const { body } = await listed(at, { q: search, ...query })
        return isRecord(body) && Array.isArray(body.rows) ? body.rows.length : undefined
      }
      expectValue(await countRows({}), 20, 'rows without limit')
      expectValue(await countRows({ limit: '40' }), 40, 'rows with limit=40')
      const longest = await countRows({ limit: '100000' })
      if (longest === undefined || longest < 40 || longest > MAX_PAGE)
        throw new Deviation(`rows with limit=100000: expected 40 to ${MAX_PAGE}, got ${longest}`)
      expectValue(await countRows({ limit: String(longest + 1) }), longest, `rows with limit=${longest + 1}`)
    }),
    check('list: an empty or zero page or limit is as good as absent', async (at) => {
      for (const query of ['page=', 'page=0', 'limit=', 'limit=0'])
        expectAnswer(await at.api('GET', `/videos?${query}`), { status: 200 })
    }),
    check('list: a 304 costs no read', async (at) => {
      const first = await at.api('GET', '/videos')
      const headers: [string, string][] = [['If-None-Match', first.headers.etag ?? '']]
      const answers = [await at.api('GET', '/videos', { headers }), await at.api('GET', '/videos', { headers })]
      for (const answer of answers) expectAnswer(answer, { status: 304 })
      const [before = 0, after = 0] = [first, answers[1]].map((answer) =>
        Number(/r=(\d+)/.exec(String(answer?.headers.ratelimit))?.[1]),
      )
      expectValue(after >= before, true, 'reads left after two 304 are as many as before')
    }),
    check('list: status filters by one or several states; another word is 400', async (at) => {
      const id = await at.sharedEmptyVideo()
      const states = async (status: string) => {
        const answer = await at.api('GET', `/videos?status=${encodeURIComponent(status)}&q=${id}`)
        expectAnswer(answer, { status: 200 })
        return (answer.body as { count: number }).count
      }
      expectValue(await states('PRE-Upload'), 1, 'count of PRE-Upload')
      expectValue(await states('ready, PRE-Upload'), 1, 'count of either')
      expectValue(await states('ready'), 0, 'count of ready')
      expectAnswer(await at.api('GET', '/videos?status=done'), refused(400, /done/))
    }),
    check('list: a parameter that nearly is one is 400; others are ignored', async (at) => {
      for (const query of ['Page=2', 'folderid=root', 'stauts=ready'])
        expectAnswer(await at.api('GET', `/videos?${query}`), refused(400))
      expectAnswer(await at.api('GET', '/videos?_=1&t=2&offset=3'), { status: 200 })
    }),
    check('list: a page or limit that is no whole number from 1 is 400', async (at) => {
      for (const query of ['page=x', 'limit=-1', 'limit=1.5', 'page=1&page=2'])
        expectAnswer(await at.api('GET', `/videos?${query}`), refused(400))
    }),
    check('list: q is part of a title in any case', async (at) => {
      const { ids, search } = await newVideos(at, 1)
      expectAnswer(await listed(at, { q: `${search.toUpperCase()} N` }), rows(1, ids))
    }),
    check('list: q is part of an id', async (at) => {
      const { ids } = await newVideos(at, 1)
      expectAnswer(await listed(at, { q: ids[0]?.slice(4, 30) ?? '' }), rows(1, ids))
    }),
    check('list: q is taken literally, % and _ too', async (at) => {
      const { videoId: id } = await at.credentials(`${at.newTitle()} 100%_sure`)
      expectAnswer(await listed(at, { q: `${at.titlePrefix}%` }), rows(0, []))
      expectAnswer(await listed(at, { q: `${at.titlePrefix}_` }), rows(0, []))
      const { body } = await listed(at, { q: '100%_sure' })
      expectValue(
        isRecord(body) && Array.isArray(body.rows) && body.rows.some((row) => row.id === id),
        true,
        'found by 100%_sure',
      )
    }),
    check('list: tag and tags filter, tags by AND, case-sensitive', async (at) => {
      const { ids } = await newVideos(at, 2)
      const [first = '', second = ''] = ids
      const [a, b] = [`${at.titlePrefix}-and-a`, `${at.titlePrefix}-and-b`]
      expectAnswer(await at.api('POST', '/videos/tags', { json: { videos: ids, tags: [a] } }), DONE)
      expectAnswer(await at.api('POST', '/videos/tags', { json: { videos: [first], tags: [b] } }), DONE)
      expectAnswer(await listed(at, { tag: a }), rows(2, [second, first]))
      expectAnswer(await listed(at, { tags: `${a},${b}` }), rows(1, [first]))
      expectAnswer(await listed(at, { tag: a.toUpperCase() }), rows(0, []))
      expectAnswer(await listed(at, { tags: `${a},${at.titlePrefix}-no-such-tag` }), rows(0, []))
    }),
    check('list: folderId=root has what lies in no folder; an unknown folder is 404', async (at) => {
      const { ids, search } = await newVideos(at, 1)
      expectAnswer(await listed(at, { q: search, folderId: 'root' }), rows(1, ids))
      expectAnswer(await listed(at, { folderId: UNKNOWN_ID }), refused(404))
    }),
    check('list: an ETag, Cache-Control: private, max-age=0, and 304 as long as nothing changed', async (at) => {
      await at.sharedEmptyVideo()
      const first = await at.api('GET', '/videos')
      expectAnswer(first, { status: 200, headers: { etag: /^(W\/)?"[^"]+"$/, 'cache-control': 'private, max-age=0' } })
      const headers: [string, string][] = [['If-None-Match', first.headers.etag ?? '']]
      expectAnswer(await at.api('GET', '/videos', { headers }), { status: 304, text: '' })
      await at.credentials()
      expectAnswer(await at.api('GET', '/videos', { headers }), { status: 200 })
    }),
    check(
      'list: nothing of another account',
      async (at) => {
        const { search } = await newVideos(at, 1)
        expectAnswer(await at.api('GET', `/videos?${new URLSearchParams({ q: search })}`, { key: at.otherKey }), rows(0, []))
      },
      'other-key',
    ),
  ],
}

type Posters = { posters: { width: number; height: number; posterUrl: string }[]; poster: string }

export const videos: Section = {
  section: 3,
  title: 'Current interface: videos',
  checks: [
    check('one: the video with all its fields', async (at) => {
      const id = await at.sharedReadyVideo()
      expectAnswer(await at.api('GET', `/videos/${id}`), {
        status: 200,
        body: { ...VIDEO, id, status: 'ready', totalSizeBytes: positive },
      })
    }),
    check('one: tags is an array even when empty', async (at) => {
      expectAnswer(await at.api('GET', `/videos/${await at.sharedEmptyVideo()}`), { status: 200, body: { tags: inOrder() } })
    }),
    check(
      'one: a ready video has posters in two sizes at least, within 854×480 and 427×240, served without a key',
      async (at) => {
        const { posters, poster } = (await at.video(await at.sharedReadyVideo())) as Posters
        expectValue(posters.length >= 2, true, 'two posters')
        for (const [width, height] of [
          [854, 480],
          [427, 240],
        ] as const) {
          const fits = posters.some(
            (one) =>
              (one.width === width && one.height <= height) ||
              (one.height === height && one.width <= width) ||
              (one.width <= width && one.height <= height),
          )
          expectValue(fits, true, `a poster within ${width}×${height}`)
        }
        expectValue(
          posters.some(({ posterUrl }) => posterUrl === poster),
          true,
          'poster is one of the posters',
        )
        for (const { posterUrl } of posters)
          expectAnswer(await at.send({ method: 'GET', url: posterUrl }), {
            status: 200,
            headers: { 'content-type': /^image\/(jpeg|webp|png)$/ },
          })
      },
    ),
    check('one: posters of a video whose public is 0 are served to its account’s key alone', async (at) => {
      const { videoId: id } = await at.credentials()
      expectAnswer(await addFile(at, id, 'one.png', PICTURE), { status: 200 })
      const { posters } = (await at.video(id)) as Posters
      expectAnswer(await at.api('POST', `/videos/${id}`, { json: { public: 0 } }), { status: 200 })
      const url = posters[0]?.posterUrl ?? ''
      const withKey = [['Authorization', `Apisecret ${at.key}`]] as const
      expectAnswer(await at.send({ method: 'GET', url }), { status: 404 })
      const otherKey = [['Authorization', `Apisecret ${at.otherKey}`]] as const
      if (at.has('other-key')) expectAnswer(await at.send({ method: 'GET', url, headers: otherKey }), { status: 404 })
      expectAnswer(await at.send({ method: 'GET', url, headers: withKey }), {
        status: 200,
        headers: { 'content-type': /^image\/(jpeg|webp|png)$/ },
      })
    }),
    check('edit: {"message":"Successfully updated"}, and what was sent is what is read', async (at) => {
      const { videoId: id } = await at.credentials()
      const changes = { title: `${at.newTitle()} “ä” 😀`, description: 'Zeile 1\nZeile 2', public: 0 }
      const answer = await at.api('POST', `/videos/${id}`, { json: changes })
      expectAnswer(answer, { status: 200, body: exactly({ message: 'Successfully updated' }) })
      expectAnswer(await at.api('GET', `/videos/${id}`), { status: 200, body: changes })
    }),
    check('one: public is 1 unless its owner says otherwise', async (at) => {
      expectAnswer(await at.api('GET', `/videos/${(await at.credentials()).videoId}`), { status: 200, body: { public: 1 } })
    }),
    check('HEAD of a poster is as its GET, without a body', async (at) => {
      const { poster } = (await at.video(await at.sharedReadyVideo())) as Posters
      expectAnswer(await at.send({ method: 'HEAD', url: poster }), {
        status: 200,
        headers: { 'content-type': /^image\// },
        text: '',
      })
    }),
    check('edit: fields are read without a Content-Type', async (at) => {
      const { videoId: id } = await at.credentials()
      const title = at.newTitle()
      expectAnswer(await at.api('POST', `/videos/${id}`, { body: JSON.stringify({ title }) }), { status: 200 })
      expectAnswer(await at.api('GET', `/videos/${id}`), { status: 200, body: { title } })
    }),
    check('edit: as a form too', async (at) => {
      const { videoId: id } = await at.credentials()
      const title = `${at.newTitle()} by form`
      expectAnswer(await at.api('POST', `/videos/${id}`, { form: { title } }), { status: 200 })
      expectAnswer(await at.api('GET', `/videos/${id}`), { status: 200, body: { title } })
    }),
    check('credentials: {clientPayload, videoId} with the seven fields', async (at) => {
      const title = at.newTitle()
      const answer = await at.api('PUT', `/videos?title=${encodeURIComponent(title)}`)
      const fields = ['policy', 'key', 'x-amz-signature', 'x-amz-algorithm', 'x-amz-date', 'x-amz-credential']
      const clientPayload = exactly({ ...Object.fromEntries(fields.map((field) => [field, /./])), uploadLink: webAddress })
      expectAnswer(answer, { status: 200, body: exactly({ clientPayload, videoId }) })
      const { videoId: id } = answer.body as { videoId: string }
      at.removeVideo(id)
      expectAnswer(await at.api('GET', `/videos/${id}`), { status: 200, body: { id, title, status: 'PRE-Upload' } })
    }),
    check('credentials: the video lists as PRE-Upload immediately', async (at) => {
      const { ids, search } = await newVideos(at, 1)
      const [id = ''] = ids
      const body = exactly({ count: 1, rows: inOrder({ id, status: 'PRE-Upload' }) })
      expectAnswer(await listed(at, { q: search }), { status: 200, body })
    }),
    check('credentials: without a title 400', async (at) => {
      expectAnswer(await at.api('PUT', '/videos'), refused(400))
    }),
    check('delete: {"code":200,"message":"Successfully deleted N videos"}, with commas and spaces', async (at) => {
      const { ids } = await newVideos(at, 3)
      const [a = '', b = '', c = ''] = ids
      const deleted = (count: number) => ({
        status: 200,
        body: exactly({ code: 200, message: `Successfully deleted ${count} videos` }),
      })
      expectAnswer(await at.api('DELETE', `/videos?videos=${a},%20${b}`), deleted(2))
      expectAnswer(await at.api('DELETE', `/videos?videos=${c}`), deleted(1))
      expectAnswer(await at.api('DELETE', `/videos?videos=${a},${UNKNOWN_ID}`), deleted(0))
      expectAnswer(await at.api('GET', `/videos/${a}`), refused(404, 'Video not found'))
    }),
    check('delete: ids in a body too, at most 1 000', async (at) => {
      const { ids } = await newVideos(at, 2)
      const unknown = (count: number) => Array.from({ length: count }, (_, n) => n.toString(16).padStart(32, 'f'))
      const tooMany = await at.api('DELETE', '/videos', { json: { videos: [...ids, ...unknown(999)] } })
      expectAnswer(tooMany, refused(400, /1[, .\u202f]?000/))
      expectAnswer(await at.api('DELETE', '/videos', { json: { videos: [...ids, ...unknown(998)] } }), {
        status: 200,
        body: exactly({ code: 200, message: 'Successfully deleted 2 videos' }),
      })
    }),
    check(
      'delete: another account’s video is not touched',
      async (at) => {
        const id = await at.sharedEmptyVideo()
        const answer = await at.api('DELETE', `/videos?videos=${id}`, { key: at.otherKey })
        expectAnswer(answer, { status: 200, body: { message: 'Successfully deleted 0 videos' } })
        expectAnswer(await at.api('GET', `/videos/${id}`), { status: 200 })
      },
      'other-key',
    ),
    check('OTP: exactly 200 and {otp, playbackInfo}', async (at) => {
      const answer = await at.api('POST', `/videos/${await at.sharedReadyVideo()}/otp`, { json: {} })
      expectAnswer(answer, { status: 200, body: exactly({ otp, playbackInfo: anyText }) })
    }),
    check('OTP: issued for a video that is not ready too', async (at) => {
      expectAnswer(await at.api('POST', `/videos/${await at.sharedEmptyVideo()}/otp`), { status: 200 })
    }),
  ],
}

export const tags: Section = {
  section: 3,
  title: 'Current interface: tags',
  checks: [
    check('tags: added, replaced, cleared, removed: {"message":"Done"} and the video shows it', async (at) => {
      const { videoId: id } = await at.credentials()
      const [a, b, c] = ['a', 'b', 'c'].map((letter) => `${at.titlePrefix}-${letter}`) as [string, string, string]
      const change = async (method: string, given: string[], then: string[]) => {
        expectAnswer(await at.api(method, '/videos/tags', { json: { videos: [id], tags: given } }), DONE)
        expectAnswer(await at.api('GET', `/videos/${id}`), { status: 200, body: { tags: inOrder(...then) } })
      }
      await change('POST', [a, b], [a, b])
      await change('POST', [b, c], [a, b, c])
      await change('DELETE', [b], [a, c])
      await change('PUT', [b], [b])
      await change('PUT', [], [])
    }),
    check('tags: all tags are {rows:[…]}, without doubles', async (at) => {
      const { ids } = await newVideos(at, 2)
      const tag = `${at.titlePrefix}-listed`
      expectAnswer(await at.api('POST', '/videos/tags', { json: { videos: ids, tags: [tag] } }), DONE)
      const has = is(`"${tag}" once`, (rows) => Array.isArray(rows) && rows.filter((row) => row === tag).length === 1)
      expectAnswer(await at.api('GET', '/videos/tags'), { status: 200, body: exactly({ rows: listOf(anyText) }) })
      expectAnswer(await at.api('GET', '/videos/tags'), { status: 200, body: { rows: has } })
    }),
    check('tags: at most 200 for a video', async (at) => {
      const { videoId: id } = await at.credentials()
      const tags = Array.from({ length: 200 }, (_, n) => `${at.titlePrefix}-tag${n}`)
      const put = (tags: string[]) => at.api('PUT', '/videos/tags', { json: { videos: [id], tags } })
      expectAnswer(await put([...tags, 'one more']), refused(400, /200/))
      expectAnswer(await at.api('GET', `/videos/${id}`), { status: 200, body: { tags: inOrder() } })
      expectAnswer(await put(tags), DONE)
      const one = { json: { videos: [id], tags: ['one more'] } }
      expectAnswer(await at.api('POST', '/videos/tags', one), refused(400, /200/))
      expectAnswer(await put([]), DONE)
    }),
    check('tags: an unknown video is 404, and nothing is tagged', async (at) => {
      const { videoId: id } = await at.credentials()
      const body = { videos: [id, UNKNOWN_ID], tags: [`${at.titlePrefix}-untagged`] }
      expectAnswer(await at.api('POST', '/videos/tags', { json: body }), refused(404))
      expectAnswer(await at.api('GET', `/videos/${id}`), { status: 200, body: { tags: inOrder() } })
    }),
  ],
}

export const demo: Section = {
  section: 3,
  title: 'Current interface: demo',
  checks: [
    check('demo: without a key {otp, playbackInfo} where a demo is shown, else 404', async (at) => {
      const answer = await at.api('GET', '/site/homepage_video', { key: null })
      if (answer.status === 404) return expectAnswer(answer, { status: 404, body: without('otp') })
      expectAnswer(answer, { status: 200, body: exactly({ otp, playbackInfo: anyText }) })
    }),
  ],
}
