import { expect, onTestFinished, test } from 'vitest'
import { createOwner } from '../client.ts'
import { makeDatabase } from '../postgres.ts'
import { type Reelgate, startReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'
import { readMediaPlaylist, readRenditions } from '../viewer.ts'
import { startProxy } from './proxy.ts'

test('F-45: a server whose database another one has taken is not ready, and gives out nothing, keys included; when that one stops it starts again', async () => {
  const { url: databaseUrl = '', remove } = await makeDatabase({ database: 'postgres' })
  onTestFinished(remove)
  const proxy = await startProxy(databaseUrl)
  const reelgate = await startReelgate({ database: 'sqlite', env: { REELGATE_DATABASE_URL: proxy.through(databaseUrl) } })
  const { owner, masterKeyFile } = reelgate
  const videoId = await owner.readyVideo(await makeVideo())
  const viewer = reelgate.newViewer()
  await viewer.redeem(await owner.issueOtp(videoId))
  expect((await viewer.key(0)).status).toBe(200)
  const [rendition] = readRenditions(await viewer.playlist('main'))
  const { init } = readMediaPlaylist(await viewer.playlist(rendition?.uri ?? ''))
  const initUrl = new URL(init, `${reelgate.url}/play/${viewer.state.session}/playlist/`)
  expect((await fetch(initUrl)).status).toBe(200)

  proxy.refuse()
  await expect.poll(async () => (await owner.call('PUT', '/api/videos?title=away')).status).toBe(503)
  const env = { REELGATE_DATABASE_URL: databaseUrl, REELGATE_MASTER_KEY_FILE: masterKeyFile }
  const other = await startReelgate({ database: 'sqlite', env })
  const atOther = createOwner(other.url, owner.apiKey)
  expect((await atOther.delete([videoId])).message).toBe('Successfully deleted 1 videos')
  proxy.forward()
  await expect.poll(() => readiness(reelgate)).toMatchObject([503, { checks: { database: 'held by another server' } }])
  expect((await fetch(`${reelgate.url}/healthz`)).status).toBe(200)

  expect((await viewer.key(0)).status).toBe(503)
  expect((await fetch(initUrl)).status).toBe(503)
  expect((await fetch(`${reelgate.url}/player/`)).status).toBe(503)
  for (const method of ['GET', 'PUT']) {
    const refused = await owner.call(method, '/api/videos?title=ours')
    expect([refused.status, refused.headers.has('retry-after')]).toEqual([503, true])
    expect(await refused.text()).toMatch(/^(?!.*(postgres:|127\.0\.0\.1)).*The database is held by another server/)
  }
  expect((await reelgate.cli('account', 'list')).stderr).toContain('The database is held by another server')

  await other.stop()
  await expect.poll(() => readiness(reelgate).catch(() => [])).toMatchObject([200, { status: 'ready' }])
  expect((await viewer.key(0)).status).not.toBe(200)
  expect((await owner.call('PUT', '/api/videos?title=ours')).status).toBe(200)
  expect(readRows({ ...reelgate, databaseUrl }, 'select title from video')).toEqual([{ title: 'ours' }])
})

async function readiness({ url }: Reelgate): Promise<unknown[]> {
  const response = await fetch(`${url}/readyz`)
  return [response.status, await response.json()]
}
