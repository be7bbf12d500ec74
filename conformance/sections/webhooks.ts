import { check, type Section } from '../check.ts'
import { Deviation, expectAnswer, expectValue } from '../expect.ts'
import type { Installation } from '../installation.ts'
import { isSignedBy } from '../public-host.ts'
import { anyText, exactly, is, isRecord, listOf, sentence, unixSeconds, videoId, whole } from '../shape.ts'
import { refused } from './errors.ts'

const nowInMs = is(
  'Unix milliseconds of now',
  (value) => Number.isInteger(value) && Math.abs(Number(value) - Date.now()) < 86_400_000,
)

async function newWebhook(at: Installation, path: string, event: string): Promise<{ uuid: string; secret: string }> {
  const { url } = await at.publicHost()
  const answer = await at.api('POST', '/hooks', { json: { type: 'http', value: `${url}${path}`, event, status: 1 } })
  expectAnswer(answer, {
    status: 200,
    body: { uuid: /./, secret: /^whsec_[A-Za-z0-9+/]{32,}=*$/, value: `${url}${path}`, event },
  })
  const { uuid, secret } = answer.body as { uuid: string; secret: string }
  at.atEnd(() => at.api('DELETE', '/hooks', { json: { uuid } }))
  return { uuid, secret }
}

/** Adds a webhook, causes its event, and checks what it receives. @param trigger returns the video's id */
async function waitForEvent(at: Installation, event: string, trigger: () => Promise<string>) {
  const path = `/hook/${event.replace(':', '-')}`
  const { secret, uuid } = await newWebhook(at, path, event)
  const id = await trigger()
  const outside = await at.publicHost()
  const received = await outside.next(path, ({ text }) => text.includes(id))
  if (!isSignedBy(secret, received)) throw new Deviation('webhook-signature: expected one of this body by this secret')
  expectValue(received.method, 'POST', 'method')
  expectValue(received.headers['content-type'], /^application\/json/, 'content-type')
  expectValue(received.headers['webhook-id'], /./, 'webhook-id')
  expectValue(Number(received.headers['webhook-timestamp']), unixSeconds, 'webhook-timestamp')
  const body: unknown = JSON.parse(received.text)
  const reason = event === 'video:failed' ? { statusReason: sentence } : undefined
  const duplicate =
    isRecord(body) && isRecord(body.payload) && 'duplicateOf' in body.payload ? { duplicateOf: videoId } : undefined
  const payload = exactly({
    id,
    title: anyText,
    upload_time: unixSeconds,
    tags: listOf(anyText),
    length: is('a number', (value) => typeof value === 'number'),
    status: anyText,
    ...reason,
    ...duplicate,
  })
  expectValue(body, { hookId: uuid, event, time: nowInMs, payload }, 'body')
  return body as { payload: { id: string; status: string } }
}

export const webhooks: Section = {
  section: 7,
  title: 'Webhooks',
  checks: [
    check(
      'webhooks: added with their secret, listed without it, deleted: {"message":"Deleted"}',
      async (at) => {
        const { uuid, secret } = await newWebhook(at, '/hook/listed', 'video:ready')
        const list = await at.api('GET', '/hooks')
        const listed = is('the new webhook', (rows) => Array.isArray(rows) && rows.some((row) => row.uuid === uuid))
        expectAnswer(list, { status: 200, body: exactly({ rows: listed }) })
        expectValue(list.text.includes(secret), false, 'the secret in the list')
        const deleted = { status: 200, body: exactly({ message: 'Deleted' }) }
        expectAnswer(await at.api('DELETE', '/hooks', { json: { uuid } }), deleted)
        expectAnswer(await at.api('DELETE', '/hooks', { json: { uuid } }), refused(404))
      },
      'listen',
    ),
    check('webhooks: an address inside, another scheme or an unknown event is 400', async (at) => {
      for (const value of ['http://10.0.0.1/', 'http://[::1]/', 'ftp://example.org/', 'no address'])
        expectAnswer(
          await at.api('POST', '/hooks', { json: { type: 'http', value, event: 'video:ready', status: 1 } }),
          refused(400, sentence),
        )
      expectAnswer(
        await at.api('POST', '/hooks', {
          json: { type: 'http', value: 'https://example.org/', event: 'video:nothing', status: 1 },
        }),
        refused(400, sentence),
      )
    }),
    check(
      'video:ready is sent, signed after Standard Webhooks, when the video plays, and video:readyall when all renditions are done',
      async (at) => {
        await waitForEvent(at, 'video:readyall', async () => {
          const { payload } = await waitForEvent(at, 'video:ready', () => at.uploadedVideo())
          expectValue(payload.status, 'ready', 'payload.status')
          return payload.id
        })
      },
      'listen',
    ),
    check(
      'video:failed is sent for what is no video',
      async (at) => {
        await waitForEvent(at, 'video:failed', async () => {
          const issued = await at.credentials()
          expectAnswer(await at.upload(issued), { status: 201 })
          return issued.videoId
        })
      },
      'listen',
    ),
    check(
      'video:deleted is sent',
      async (at) => {
        await waitForEvent(at, 'video:deleted', async () => {
          const { videoId } = await at.credentials()
          expectAnswer(await at.api('DELETE', `/videos?videos=${videoId}`), { status: 200 })
          return videoId
        })
      },
      'listen',
    ),
    check(
      'redirects are not followed',
      async (at) => {
        const outside = await at.publicHost()
        await newWebhook(at, '/redirect/hook', 'video:deleted')
        const before = outside.received('/video/after-redirect.mp4').filter(({ method }) => method === 'POST').length
        const { videoId } = await at.credentials()
        await at.api('DELETE', `/videos?videos=${videoId}`)
        await outside.next('/redirect/hook', ({ text }) => text.includes(videoId))
        expectValue(
          outside.received('/video/after-redirect.mp4').filter(({ method }) => method === 'POST').length,
          before,
          'calls after a redirect',
        )
      },
      'listen',
    ),
    check(
      'another account’s webhooks are not seen',
      async (at) => {
        const { uuid } = await newWebhook(at, '/hook/mine', 'video:ready')
        expectAnswer(await at.api('DELETE', '/hooks', { key: at.otherKey, json: { uuid } }), refused(404))
        const others = is('without it', (rows) => Array.isArray(rows) && !rows.some((row) => row.uuid === uuid))
        expectAnswer(await at.api('GET', '/hooks', { key: at.otherKey }), { status: 200, body: exactly({ rows: others }) })
      },
      'listen',
      'other-key',
    ),
  ],
}

export const usage: Section = {
  section: 3,
  title: 'Current interface: usage',
  checks: [
    check('usage: the CSV video,bandwidth of a day, in kilobytes', async (at) => {
      const date = new Date().toISOString().slice(0, 10)
      const answer = await at.api('POST', '/account/video-usage', { json: { date } })
      expectAnswer(answer, {
        status: 200,
        headers: { 'content-type': /^text\/csv/ },
        text: /^video,bandwidth\r?\n("?[0-9a-f]{32}"?,\d+(\.\d+)?\r?\n?)*$/,
      })
    }),
    check('usage: what is no day is 400', async (at) => {
      for (const json of [{}, { date: 'yesterday' }, { date: '2026-02-30' }, { date: 5 }])
        expectAnswer(await at.api('POST', '/account/video-usage', { json }), refused(400))
    }),
    check('viewCount is a whole number', async (at) => {
      expectAnswer(await at.v2(`/video?id=${await at.sharedReadyVideo()}`), { status: 200, body: { viewCount: whole } })
    }),
  ],
}
