import { expect, test } from 'vitest'
import { startBalancer } from '../balancer.ts'
import { makeInstallation } from '../several-servers.ts'
import { makeVideo } from '../videos.ts'
import { createViewer } from '../viewer.ts'

// Two servers over HTTP behind a balancer that gives each request to the next one.

test('P37: a viewer plays on when a second server joins, each request goes to the next one, and no proof works twice', async () => {
  const installation = await makeInstallation()
  const first = await installation.start()
  const videoId = await first.owner.readyVideo(await makeVideo())
  const early = createViewer(first.url)
  expect((await early.redeem(await first.owner.issueOtp(videoId))).status).toBe(200)
  expect((await early.key(0)).status).toBe(200)

  const second = await installation.start()
  const url = await startBalancer([first.url, second.url])
  expect((await early.key(0)).status).toBe(401) // signed with a nonce from before
  expect((await early.key(0)).status).toBe(200)

  const viewer = createViewer(url)
  expect((await viewer.redeem(await first.owner.issueOtp(videoId))).status).toBe(200)
  expect((await viewer.download('1')).segments.length).toBeGreaterThan(0)
  const { session } = viewer.state
  const header = viewer.proof({ operation: 'key', session, argument: '0' })
  const statuses = await Promise.all(
    [1, 2, 3, 4].map(async () => (await viewer.send('GET', `/play/${session}/key/0`, header)).status),
  )
  expect(statuses.sort()).toEqual([200, 401, 401, 401])
  viewer.newPage()
  expect((await viewer.reopen()).status).toBe(200)
  const stopped = await second.owner.call('DELETE', `/api/sessions?session=${session}`)
  expect(stopped.status).toBe(200)
  for (let n = 0; n < 4; n++) expect((await viewer.key(0)).status).toBe(403)
})
