import { check, type Section } from '../check.ts'
import { expectAnswer } from '../expect.ts'
import type { Answer } from '../http.ts'
import type { Installation } from '../installation.ts'
import { anyText, exactly, videoId as folderId, inOrder, is, isoTime, isRecord, listOf, oneOf, whole } from '../shape.ts'
import { refused } from './errors.ts'

const UNKNOWN_ID = '0123456789abcdef0123456789abcdef'

const LISTED = exactly({ id: folderId, name: anyText, parent: oneOf(null, folderId), videosCount: whole, foldersCount: whole })
const placed = (id: string, name: string, parent: string | null) => exactly({ id, name, parent })

/** A folder that is gone at the end. */
async function newFolder(
  at: Installation,
  parent = 'root',
  name = at.newTitle(),
): Promise<{ id: string; name: string; made: Answer }> {
  const made = await at.api('POST', '/videos/folders', { json: { name, parent } })
  expectAnswer(made, { status: 200 })
  const id = isRecord(made.body) ? String(made.body.id) : ''
  at.atEnd(() => at.api('DELETE', `/videos/folders/${id}`))
  return { id, name, made }
}

async function newVideo(at: Installation, folder: string): Promise<string> {
  const answer = await at.api('PUT', `/videos?title=${encodeURIComponent(at.newTitle())}&folderId=${folder}`)
  expectAnswer(answer, { status: 200 })
  const id = isRecord(answer.body) ? String(answer.body.videoId) : ''
  at.removeVideo(id)
  return id
}

export const folders: Section = {
  section: 3,
  title: 'Current interface: folders',
  checks: [
    check('folder create: {id, parent, name, videosCount:0, foldersCount:0}, parent null under root', async (at) => {
      const { name, made } = await newFolder(at)
      const body = exactly({ id: folderId, parent: null, name, videosCount: 0, foldersCount: 0 })
      expectAnswer(made, { status: 200, body })
    }),
    check('folder create: in another folder, whose id is its parent', async (at) => {
      const outer = await newFolder(at)
      const { made } = await newFolder(at, outer.id)
      expectAnswer(made, { status: 200, body: { parent: outer.id } })
    }),
    check('folder list: {folderList, current, parent}, the root under its literal name', async (at) => {
      const { id } = await newFolder(at)
      const listed = is('the new folder among them', (list) => Array.isArray(list) && list.some((one) => one.id === id))
      const answer = await at.api('GET', '/videos/folders/root')
      expectAnswer(answer, {
        status: 200,
        body: exactly({ folderList: listOf(LISTED), current: { id: 'root', parent: null }, parent: null }),
      })
      expectAnswer(answer, { status: 200, body: { folderList: listed } })
    }),
    check('folder list: counts what lies directly in each, and names the parent', async (at) => {
      const outer = await newFolder(at)
      const middle = await newFolder(at, outer.id)
      const inner = await newFolder(at, middle.id)
      await newVideo(at, inner.id)
      const row = exactly({ id: inner.id, name: inner.name, parent: middle.id, videosCount: 1, foldersCount: 0 })
      const body = exactly({
        folderList: inOrder(row),
        current: placed(middle.id, middle.name, outer.id),
        parent: placed(outer.id, outer.name, null),
      })
      expectAnswer(await at.api('GET', `/videos/folders/${middle.id}`), { status: 200, body })
    }),
    check('folder search: by prefix, exactly with searchExact, path innermost first', async (at) => {
      const outer = await newFolder(at)
      const middle = await newFolder(at, outer.id)
      const { id, name } = await newFolder(at, middle.id, `${at.titlePrefix} found`)
      const found = exactly({
        name,
        id,
        folderPath: inOrder(exactly({ id: middle.id, name: middle.name }), exactly({ id: outer.id, name: outer.name })),
        createdAt: isoTime,
      })
      const search = (json: object) => at.api('POST', '/videos/folders/search', { json })
      expectAnswer(await search({ name: `${at.titlePrefix} fou` }), { status: 200, body: exactly({ folders: inOrder(found) }) })
      expectAnswer(await search({ name, searchExact: true }), { status: 200, body: exactly({ folders: inOrder(found) }) })
      expectAnswer(await search({ name: `${at.titlePrefix} fou`, searchExact: true }), {
        status: 200,
        body: exactly({ folders: inOrder() }),
      })
      expectAnswer(await search({ name: 'found' }), {
        status: 200,
        body: { folders: is('without it', (list) => Array.isArray(list) && !list.some((one) => one.id === id)) },
      })
    }),
    check('folder rename: {"message":"Folder has been updated"}', async (at) => {
      const { id } = await newFolder(at)
      const name = at.newTitle()
      const answer = await at.api('PUT', `/videos/folders/${id}`, { json: { name } })
      expectAnswer(answer, { status: 200, body: exactly({ message: 'Folder has been updated' }) })
      expectAnswer(await at.api('GET', `/videos/folders/${id}`), { status: 200, body: { current: { name } } })
    }),
    check('folder delete: {"message":"Folder Deleted"}; its videos move to the parent', async (at) => {
      const outer = await newFolder(at)
      const { id } = await newFolder(at, outer.id)
      const video = await newVideo(at, id)
      const answer = await at.api('DELETE', `/videos/folders/${id}`)
      expectAnswer(answer, { status: 200, body: exactly({ message: 'Folder Deleted' }) })
      expectAnswer(await at.api('GET', `/videos/${video}`), { status: 200, body: { folderId: outer.id } })
      expectAnswer(await at.api('GET', `/videos/folders/${id}`), refused(404))
    }),
    check('a video is moved by its edit, and the list is filtered by folderId', async (at) => {
      const { id } = await newFolder(at)
      const { videoId } = await at.credentials()
      expectAnswer(await at.api('POST', `/videos/${videoId}`, { json: { folderId: id } }), { status: 200 })
      const rows = inOrder({ id: videoId, folderId: id })
      expectAnswer(await at.api('GET', `/videos?folderId=${id}`), { status: 200, body: exactly({ count: 1, rows }) })
    }),
    check('an unknown folder is 404, wherever it is named', async (at) => {
      const { videoId } = await at.credentials()
      expectAnswer(await at.api('GET', `/videos/folders/${UNKNOWN_ID}`), refused(404))
      expectAnswer(await at.api('PUT', `/videos/folders/${UNKNOWN_ID}`, { json: { name: 'x' } }), refused(404))
      expectAnswer(await at.api('DELETE', `/videos/folders/${UNKNOWN_ID}`), refused(404))
      expectAnswer(await at.api('POST', '/videos/folders', { json: { name: 'x', parent: UNKNOWN_ID } }), refused(404))
      expectAnswer(await at.api('PUT', `/videos?title=x&folderId=${UNKNOWN_ID}`), refused(404))
      expectAnswer(await at.api('POST', `/videos/${videoId}`, { json: { folderId: UNKNOWN_ID } }), refused(404))
    }),
    check(
      'another account’s folder is an unknown one',
      async (at) => {
        const { id } = await newFolder(at)
        expectAnswer(await at.api('GET', `/videos/folders/${id}`, { key: at.otherKey }), refused(404))
        expectAnswer(await at.api('DELETE', `/videos/folders/${id}`, { key: at.otherKey }), refused(404))
      },
      'other-key',
    ),
  ],
}
