import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import { startServer } from '../../src/server.ts'
import { createOwner } from '../client.ts'
import { makeLocation } from '../installation-folder.ts'
import { readRows } from '../rows.ts'

const DAY_S = 24 * 3600

test('F-36: a video whose upload never came is deleted three days after its credentials, and its owner gets an event; every other stays', async () => {
  const location = await makeLocation()
  onTestFinished(location.remove)
  let wallS = Math.floor(Date.now() / 1000)
  let port = '0'
  async function start() {
    const config = readConfig({ ...location.env, PORT: port, REELGATE_LIMITS: 'off', REELGATE_DEMO: 'off' })
    const server = await startServer(config, pino({ level: 'silent' }), { wallNowS: () => wallS })
    port = new URL(server.url).port
    return server
  }

  let server = await start()
  const owner = createOwner(server.url, server.firstStart?.account?.apiKey ?? '')
  const webhook = { type: 'http', value: 'https://host.invalid/', event: 'video:deleted', status: 1 }
  expect((await owner.call('POST', '/api/hooks', { body: webhook })).status).toBe(200)
  const abandoned = await Promise.all(['one', 'two'].map(owner.credentials))
  const sent = await owner.credentials('sent')
  expect((await owner.send(sent, new Blob(['This is no video. ']))).status).toBe(201)
  await owner.until(sent.videoId, 'Not a media file').catch(() => undefined)

  await server.stop()
  wallS += 3 * DAY_S - 3600
  server = await start()
  expect((await owner.list()).count).toBe(3)
  const fresh = await owner.credentials('fresh')

  await server.stop()
  wallS += 2 * 3600
  server = await start()
  await expect.poll(async () => (await owner.list()).count).toBe(2)
  expect((await owner.list()).rows.map(({ id }) => id)).toEqual([fresh.videoId, sent.videoId])
  for (const upload of abandoned) {
    expect((await owner.call('GET', `/api/videos/${upload.videoId}`)).status).toBe(404)
    expect((await owner.send(upload, new Blob(['too late']))).status).toBe(403)
  }
  await expect.poll(() => readRows(location, 'select 1 from upload_policy')).toHaveLength(2)
  expect(readRows(location, "select 1 from delivery where body like '%video:deleted%'")).toHaveLength(2)
  expect(readRows(location, "select actor from audit_event where kind = 'video:deleted'")).toEqual([
    { actor: 'server' },
    { actor: 'server' },
  ])
  await server.stop()
})
