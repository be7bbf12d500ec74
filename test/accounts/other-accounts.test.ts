import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Owner } from '../client.ts'
import { listFiles, readRows, untilFinished } from '../data-folder.ts'
import { makeFilm } from '../films.ts'
import { type Reelgate, startSharedReelgate } from '../reelgate.ts'

// Two owners on one server. What the first does to the second's film answers as for a film that does not exist.

let reelgate: Reelgate & { remove(): Promise<void> }
let ann: Owner
let ben: Owner
let bensFilm: string
beforeAll(async () => {
  reelgate = await startSharedReelgate()
  ann = reelgate.owner
  ben = await reelgate.newOwner('Ben')
  bensFilm = await ben.readyVideo(await makeFilm(), 'Ben’s film')
  await untilFinished(reelgate, bensFilm)
  await vi.waitUntil(async () => (await ben.video(bensFilm)).posters.length === 2, { timeout: 20_000 })
})
afterAll(() => reelgate.remove())

const NO_SUCH = '0123456789abcdef'.repeat(2)

const OPERATIONS: Record<string, (owner: Owner, videoId: string) => Promise<Response>> = {
  'GET /api/videos/{id}': (owner, id) => owner.call('GET', `/api/videos/${id}`),
  'POST /api/videos/{id}/otp': (owner, id) => owner.call('POST', `/api/videos/${id}/otp`, { body: {} }),
  'DELETE /api/videos?videos={id}': (owner, id) => owner.call('DELETE', `/api/videos?videos=${id}`),
  'POST /v2/otp?video={id}': (owner, id) =>
    fetch(`${owner.url}/v2/otp?video=${id}`, { method: 'POST', body: new URLSearchParams({ clientSecretKey: owner.apiKey }) }),
  'POST /v2/otp?video={id}&type=xml': (owner, id) =>
    fetch(`${owner.url}/v2/otp?video=${id}&type=xml`, {
      method: 'POST',
      body: new URLSearchParams({ clientSecretKey: owner.apiKey }),
    }),
}

/** An answer without what differs at every call. */
async function told(response: Response) {
  const text = (await response.text()).replace(/"requestId":"[^"]*"/, '"requestId":"-"')
  const headers = [...response.headers].filter(([name]) => !['date', 'connection', 'keep-alive'].includes(name))
  return { status: response.status, text, headers }
}

/** Every row of every table but the clock's mark, and every file of a video. */
async function stateOf(installed: Reelgate): Promise<string> {
  const hash = createHash('sha256')
  const tables = readRows<{ name: string }>(installed, "select name from sqlite_master where type = 'table' order by name")
  for (const { name } of tables.filter((table) => !table.name.startsWith('sqlite_') && table.name !== 'setting')) {
    hash.update(JSON.stringify([name, readRows(installed, `select * from ${name}`)]))
  }
  for (const folder of ['sources', 'segments', 'posters']) hash.update(JSON.stringify(await listFiles(installed, folder)))
  return hash.digest('hex')
}

describe('K07: another account’s film is to its caller as one that does not exist, and stays as it is', () => {
  test.each(Object.entries(OPERATIONS))('%s', async (_, operation) => {
    const before = await stateOf(reelgate)
    const other = await told(await operation(ann, bensFilm))
    const none = await told(await operation(ann, NO_SUCH))
    expect(other).toEqual(none)
    expect(await stateOf(reelgate)).toBe(before)
  })

  test('the list names and counts one’s own films alone', async () => {
    const { videoId } = await ann.credentials('Ann’s film')
    expect(await ann.list()).toMatchObject({ count: 1, rows: [{ id: videoId }] })
    expect(await ben.list()).toMatchObject({ count: 1, rows: [{ id: bensFilm }] })
    await ann.delete([videoId])
  })
})

test('K08: a deletion of one’s own film and another’s deletes and counts one’s own, the other still plays', async () => {
  const { videoId } = await ann.credentials('Ann’s film')
  expect(await ann.delete([videoId, bensFilm])).toEqual({ code: 200, message: 'Successfully deleted 1 videos' })
  expect((await ann.call('GET', `/api/videos/${videoId}`)).status).toBe(404)
  expect((await ben.video(bensFilm)).status).toBe('ready')
  expect((await reelgate.newViewer().redeem(await ben.issueOtp(bensFilm))).playing).toBe(true)
})

test('K07: its owner can do all of it', async () => {
  for (const [name, operation] of Object.entries(OPERATIONS)) {
    if (name.startsWith('DELETE')) continue
    const response = await operation(ben, bensFilm)
    expect(response.status).toBe(200)
    expect(await response.text()).not.toContain('No video found')
  }
})
