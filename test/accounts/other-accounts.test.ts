import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Owner } from '../client.ts'
import { listFiles } from '../data-folder.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { listTablesWithoutClock, readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'

// Two owners on one server. What the first does to the second's video answers as for a video that does not exist.

let reelgate: Reelgate & { remove(): Promise<void> }
let ann: Owner
let ben: Owner
let bensVideo: string
beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeVideo(), title: 'Ben’s video' })
  ben = reelgate.owner
  bensVideo = reelgate.videoId
  ann = await reelgate.newOwner('Ann')
})
afterAll(() => reelgate.remove())

const NO_SUCH = '0123456789abcdef'.repeat(2)

const OPERATIONS: Record<string, (owner: Owner, videoId: string) => Promise<Response>> = {
  'GET /api/videos/{id}': (owner, id) => owner.call('GET', `/api/videos/${id}`),
  'POST /api/videos/{id}/otp': (owner, id) => owner.call('POST', `/api/videos/${id}/otp`, { body: {} }),
  'POST /api/videos/{id}': (owner, id) => owner.call('POST', `/api/videos/${id}`, { body: { title: 'Ann was here' } }),
  'POST /api/videos/tags': (owner, id) => owner.call('POST', '/api/videos/tags', { body: { videos: [id], tags: ['a'] } }),
  'PUT /api/videos/tags': (owner, id) => owner.call('PUT', '/api/videos/tags', { body: { videos: [id], tags: [] } }),
  'DELETE /api/videos/tags': (owner, id) => owner.call('DELETE', '/api/videos/tags', { body: { videos: [id], tags: ['a'] } }),
  'DELETE /api/videos?videos={id}': (owner, id) => owner.call('DELETE', `/api/videos?videos=${id}`),
  'POST /v2/otp?video={id}': (owner, id) => callV2(owner, `/otp?video=${id}`),
  'POST /v2/otp?video={id}&type=xml': (owner, id) => callV2(owner, `/otp?video=${id}&type=xml`),
  'POST /v2/video?id={id}': (owner, id) => callV2(owner, `/video?id=${id}`),
  'DELETE by POST /v2/video?id={id}': (owner, id) => callV2(owner, `/video?id=${id}`, { action: 'delete' }),
}

/** Each folder with a video of the owner's own. */
const FOLDER_OPERATIONS: Record<string, (owner: Owner, folderId: string, videoId: string) => Promise<Response>> = {
  'GET /api/videos/folders/{id}': (owner, id) => owner.call('GET', `/api/videos/folders/${id}`),
  'PUT /api/videos/folders/{id}': (owner, id) =>
    owner.call('PUT', `/api/videos/folders/${id}`, { body: { name: 'Ann was here' } }),
  'DELETE /api/videos/folders/{id}': (owner, id) => owner.call('DELETE', `/api/videos/folders/${id}`),
  'POST /api/videos/folders into {id}': (owner, id) =>
    owner.call('POST', '/api/videos/folders', { body: { name: 'Ann’s', parent: id } }),
  'GET /api/videos?folderId={id}': (owner, id) => owner.call('GET', `/api/videos?folderId=${id}`),
  'PUT /api/videos?folderId={id}': (owner, id) => owner.call('PUT', `/api/videos?title=mine&folderId=${id}`),
  'POST /api/videos/{own} into {id}': (owner, id, videoId) =>
    owner.call('POST', `/api/videos/${videoId}`, { body: { folderId: id } }),
}

function callV2(owner: Owner, path: string, fields: Record<string, string> = {}): Promise<Response> {
  const body = new URLSearchParams({ clientSecretKey: owner.apiKey, ...fields })
  return fetch(`${owner.url}/v2${path}`, { method: 'POST', body })
}

/** An answer without what differs at every call. */
async function answerOf(response: Response) {
  const text = (await response.text()).replace(/"requestId":"[^"]*"/, '"requestId":"-"')
  const headers = [...response.headers].filter(([name]) => !['date', 'connection', 'keep-alive'].includes(name))
  return { status: response.status, text, headers }
}

/** When a key was last used is written now and then. */
const WRITTEN_BEHIND = /"last_used_at_s":\w+/g

/** Every row of every table but the clock's mark, and every file of a video. */
async function stateOf(installed: Reelgate) {
  const rows = listTablesWithoutClock(installed).map((name) => [
    name,
    JSON.stringify(readRows(installed, `select * from ${name}`)).replace(WRITTEN_BEHIND, ''),
  ])
  const files = ['sources', 'segments', 'posters', 'files'].map(async (folder) => [folder, await listFiles(installed, folder)])
  return Object.fromEntries([...rows, ...(await Promise.all(files))])
}

describe('K07: another account’s video is to its caller as one that does not exist, and stays as it is', () => {
  test.each(Object.entries(OPERATIONS))('%s', async (_, operation) => {
    const before = await stateOf(reelgate)
    const other = await answerOf(await operation(ann, bensVideo))
    const none = await answerOf(await operation(ann, NO_SUCH))
    expect(other).toEqual(none)
    expect(await stateOf(reelgate)).toEqual(before)
  })

  test('nor does another’s folder exist, for anything that is done with folders', async () => {
    const { videoId } = await ann.credentials('Ann’s video')
    const made = await ben.call('POST', '/api/videos/folders', { body: { name: 'Ben’s' } })
    const { id } = (await made.json()) as { id: string }
    const before = await stateOf(reelgate)
    for (const operation of Object.values(FOLDER_OPERATIONS)) {
      const other = await answerOf(await operation(ann, id, videoId))
      expect(other).toMatchObject({ status: 404, text: expect.stringContaining('"Folder not found"') })
      expect(other).toEqual(await answerOf(await operation(ann, NO_SUCH, videoId)))
    }
    const found = await ann.call('POST', '/api/videos/folders/search', { body: { name: 'Ben' } })
    expect(await found.json()).toEqual({ folders: [] })
    expect(await stateOf(reelgate)).toEqual(before)
    const { 'DELETE /api/videos/folders/{id}': remove, ...others } = FOLDER_OPERATIONS
    for (const operation of [...Object.values(others), ...(remove ? [remove] : [])])
      expect((await operation(ben, id, bensVideo)).status).toBe(200)
    await ann.delete([videoId])
    await ben.delete((await ben.list('?q=mine')).rows.map((row) => row.id))
  })

  test('K08: tags for one’s own video and another’s are refused as a whole, and neither gets them', async () => {
    const { videoId } = await ann.credentials('Ann’s video')
    for (const method of ['POST', 'PUT', 'DELETE']) {
      const { status } = await ann.call(method, '/api/videos/tags', { body: { videos: [videoId, bensVideo], tags: ['both'] } })
      expect(status).toBe(404)
    }
    expect((await ann.video(videoId)).tags).toEqual([])
    expect((await ben.video(bensVideo)).tags).not.toContain('both')
    await ann.delete([videoId])
  })

  test('tags are each account’s own', async () => {
    const { videoId } = await ann.credentials('Ann’s video')
    await ann.call('POST', '/api/videos/tags', { body: { videos: [videoId], tags: ['Ann’s tag'] } })
    const tagsOf = async (owner: Owner) =>
      ((await (await owner.call('GET', '/api/videos/tags')).json()) as { rows: string[] }).rows
    expect(await tagsOf(ann)).toEqual(['Ann’s tag'])
    expect(await tagsOf(ben)).not.toContain('Ann’s tag')
    expect((await ben.list(`?tag=${encodeURIComponent('Ann’s tag')}`)).count).toBe(0)
    expect((await ben.list('?q=Ann')).count).toBe(0)
    await ann.delete([videoId])
  })

  test('the list names and counts one’s own videos alone', async () => {
    const { videoId } = await ann.credentials('Ann’s video')
    expect(await ann.list()).toMatchObject({ count: 1, rows: [{ id: videoId }] })
    expect(await ben.list()).toMatchObject({ count: 1, rows: [{ id: bensVideo }] })
    await ann.delete([videoId])
  })
})

test('K08: a deletion of one’s own video and another’s deletes and counts one’s own, the other still plays', async () => {
  const { videoId } = await ann.credentials('Ann’s video')
  expect(await ann.delete([videoId, bensVideo])).toEqual({ code: 200, message: 'Successfully deleted 1 videos' })
  expect((await ann.call('GET', `/api/videos/${videoId}`)).status).toBe(404)
  expect((await ben.video(bensVideo)).status).toBe('ready')
  expect((await reelgate.newViewer().redeem(await ben.issueOtp(bensVideo))).playing).toBe(true)
})

test('K07: its owner can do all of it', async () => {
  for (const [name, operation] of Object.entries(OPERATIONS)) {
    if (name.startsWith('DELETE')) continue
    const response = await operation(ben, bensVideo)
    expect(response.status).toBe(200)
    expect(await response.text()).not.toContain('No video found')
  }
})
