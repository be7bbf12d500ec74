import { check, type Section } from '../check.ts'
import { expectAnswer, expectValue } from '../expect.ts'
import type { Installation } from '../installation.ts'
import { anyText, exactly, isRecord, sentence, videoId } from '../shape.ts'
import { refused, refusedV2 } from './errors.ts'
import { XML } from './v2.ts'

/** What an address itself shows: its scheme, its port, a literal address inside. */
const REFUSED = [
  'ftp://example.org/video.mp4',
  'file:///etc/passwd',
  'http://example.org:25/video.mp4',
  'http://10.0.0.1/video.mp4',
  'http://[::1]/video.mp4',
  'http://169.254.169.254/latest',
  'no address',
]

async function importFrom(at: Installation, url: string, sending: 'json' | 'form' = 'json'): Promise<string> {
  const title = at.newTitle()
  const answer = await at.api('PUT', '/videos/importUrl', { [sending]: { url, title } })
  expectAnswer(answer, { status: 200, body: exactly({ id: videoId, status: 'Queued', title }) })
  const id = isRecord(answer.body) ? String(answer.body.id) : ''
  at.removeVideo(id)
  return id
}

const untilReady = (at: Installation, id: string) =>
  at.until(
    'an imported video that plays',
    () => at.video(id),
    ({ status }) => status === 'ready',
  )

export const importing: Section = {
  section: 3,
  title: 'Current interface: import',
  checks: [
    check(
      'import: {id, status:"Queued", title} for JSON and form, and the video plays',
      async (at) => {
        const { url } = await at.publicHost()
        const ids = [await importFrom(at, `${url}/video/a.mp4`), await importFrom(at, `${url}/redirect/b.mp4`, 'form')]
        for (const id of ids) await untilReady(at, id)
      },
      'listen',
    ),
    check(
      'import: into the folder that folderId names; an unknown one is 404',
      async (at) => {
        const { url } = await at.publicHost()
        const made = await at.api('POST', '/videos/folders', { json: { name: at.newTitle(), parent: 'root' } })
        const folderId = isRecord(made.body) ? String(made.body.id) : ''
        at.atEnd(() => at.api('DELETE', `/videos/folders/${folderId}`))
        const answer = await at.api('PUT', '/videos/importUrl', { json: { url: `${url}/video/folder.mp4`, folderId } })
        expectAnswer(answer, { status: 200, body: { id: videoId } })
        const id = isRecord(answer.body) ? String(answer.body.id) : ''
        at.removeVideo(id)
        expectAnswer(await at.api('GET', `/videos/${id}`), { status: 200, body: { folderId } })
        const unknown = { url: `${url}/video/folder.mp4`, folderId: '0'.repeat(32) }
        expectAnswer(await at.api('PUT', '/videos/importUrl', { json: unknown }), refused(404))
      },
      'listen',
    ),
    check(
      'import: the last part of the address becomes the video’s file',
      async (at) => {
        const { url } = await at.publicHost()
        const id = await importFrom(at, `${url}/video/part/my%20lesson.mp4?signature=x`)
        await untilReady(at, id)
        expectAnswer(await at.v2(`/video?id=${id}`), { status: 200, body: { file: 'my lesson.mp4' } })
      },
      'listen',
    ),
    check(
      'import: what only asking shows is Queued and then fails with a reason',
      async (at) => {
        const { url } = await at.publicHost()
        const id = await importFrom(at, `${url}/nothing/video.mp4`)
        const failed = await at.until(
          'a failed import',
          () => at.video(id),
          ({ status }) => /error|Not/.test(String(status)),
        )
        expectValue(failed.statusReason, sentence, 'statusReason')
      },
      'listen',
    ),
    check('import: what the address itself shows is 400', async (at) => {
      for (const url of REFUSED) expectAnswer(await at.api('PUT', '/videos/importUrl', { json: { url } }), refused(400))
      expectAnswer(await at.api('PUT', '/videos/importUrl', { json: {} }), refused(400))
    }),
    check(
      'import: off for the account is 403',
      async (at) => {
        const answer = await at.api('PUT', '/videos/importUrl', { key: at.offKey, json: { url: 'https://example.org/a.mp4' } })
        expectAnswer(answer, refused(403))
      },
      'off-key',
    ),
  ],
}

export const importingV2: Section = {
  section: 6,
  title: 'Earlier interface: import',
  checks: [
    check(
      'importUrl: one object {id, name:"Queued"}, XML likewise',
      async (at) => {
        const { url } = await at.publicHost()
        const address = encodeURIComponent(`${url}/video/v2.mp4`)
        const answer = await at.v2(`/importUrl?url=${address}`)
        expectAnswer(answer, { status: 200, body: exactly({ id: videoId, name: 'Queued' }) })
        const inXml = await at.v2(`/importUrl?url=${address}&type=xml`)
        const [, id = ''] = /<id>([0-9a-f]{32})<\/id><name>Queued<\/name>/.exec(inXml.text) ?? []
        expectAnswer(inXml, { status: 200, headers: XML, text: /<id>[0-9a-f]{32}<\/id><name>Queued<\/name>/ })
        at.removeVideo(id)
        at.removeVideo(isRecord(answer.body) ? String(answer.body.id) : '')
      },
      'listen',
    ),
    check('importUrl: what the address itself shows is 400', async (at) => {
      for (const url of REFUSED) expectAnswer(await at.v2(`/importUrl?url=${encodeURIComponent(url)}`), refusedV2(400))
      expectAnswer(await at.v2('/importUrl'), { status: 400, body: exactly({ error: anyText }) })
    }),
    check(
      'importUrl: off for the account is 403',
      async (at) => {
        const answer = await at.v2('/importUrl?url=https%3A%2F%2Fexample.org%2Fa.mp4', {}, at.offKey)
        expectAnswer(answer, refusedV2(403))
      },
      'off-key',
    ),
  ],
}
