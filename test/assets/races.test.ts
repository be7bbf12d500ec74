import { execFile } from 'node:child_process'
import { open, readdir, readlink, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Reelgate, startSharedReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'
import { addFile, type FileBody, listFiles, makeImage, SRT } from './sample-files.ts'

// Files that their owner deletes while they are sent. Limits are on: what happens here may not count against a viewer.

let reelgate: Reelgate & { remove(): Promise<void> }
let videoId: string
beforeAll(async () => {
  reelgate = await startSharedReelgate({
    env: { REELGATE_LIMITS: JSON.stringify({ playback: { ip: 1 } }) },
    video: await makeVideo(),
  })
  videoId = reelgate.videoId
})
afterAll(() => reelgate.remove())

/** Whether the server has this file open. */
async function isReading(location: string): Promise<boolean> {
  const folder = `/proc/${reelgate.pid}/fd`
  const paths = await Promise.all((await readdir(folder)).map((fd) => readlink(join(folder, fd)).catch(() => '')))
  return paths.includes(location)
}

/** Asks for a file of the video, deletes it while it is being read, and lets the reading go on. */
async function deletedWhileRead(type: 'poster' | 'caption', ask: (file: FileBody) => Promise<Response>): Promise<Response> {
  const { owner, dataDir } = reelgate
  const file = (await listFiles(owner, videoId)).find((listed) => listed.type === type && listed.enabled === 1)
  if (!file) throw new Error(`no ${type}`)
  const [row] = readRows<{ blob: string }>(reelgate, 'select blob from file where id = ?', file.id)
  const location = join(dataDir, type === 'poster' ? 'posters' : 'files', row?.blob ?? '')
  await rm(location)
  await promisify(execFile)('mkfifo', [location])
  const held = await open(location, 'r+') // a reader of the pipe waits as long as there is a writer
  const asked = ask(file)
  await expect.poll(() => isReading(location)).toBe(true)
  expect((await owner.call('DELETE', `/api/videos/${videoId}/files/${file.id}`)).status).toBe(200)
  await held.close()
  return asked
}

const addressOf = async (fileId: number) => {
  const answer = await reelgate.owner.call('GET', `/api/videos/${videoId}/files/${fileId}`)
  return ((await answer.json()) as { redirect: string }).redirect
}

test('captions that are deleted while they are sent to a viewer are 404, now and later, and count against no limit', async () => {
  await addFile(reelgate.owner, videoId, SRT, 'en')
  const viewer = reelgate.newViewer()
  await viewer.redeem(await reelgate.owner.issueOtp(videoId))
  let name = ''
  const answer = await deletedWhileRead('caption', ({ id }) => {
    name = `caption-${id}`
    return viewer.call('file', name)
  })
  const answers = [answer, ...(await Promise.all([1, 2, 3].map(() => viewer.call('file', name))))]
  for (const { status } of answers) expect(status).toBe(404)
  expect(await answer.json()).toMatchObject({ code: 'file-gone' })
  expect((await viewer.call('playlist', 'main')).status).toBe(200)
})

test('a poster that is deleted while a page shows it is 404', async () => {
  await addFile(reelgate.owner, videoId, await makeImage('640x360'))
  const { posters } = await reelgate.owner.video(videoId)
  const answer = await deletedWhileRead('poster', ({ width }) =>
    fetch(posters.find((poster) => poster.width === width)?.posterUrl ?? ''),
  )
  expect(answer.status).toBe(404)
})

test('a download of a poster, and one of captions, that are deleted while they are read, is 404', async () => {
  await addFile(reelgate.owner, videoId, await makeImage('640x360'))
  await addFile(reelgate.owner, videoId, SRT, 'de')
  for (const type of ['poster', 'caption'] as const) {
    const answer = await deletedWhileRead(type, async ({ id }) => fetch(await addressOf(id)))
    expect([type, answer.status, await answer.json()]).toMatchObject([type, 404, { code: 'file-gone' }])
  }
})

test('an original whose video is deleted during a download is sent whole or is 404', async () => {
  const { owner } = reelgate
  const video = await makeVideo({ seconds: 2 })
  for (let round = 0; round < 8; round++) {
    const doomed = await owner.upload('Doomed', video)
    const [original] = await listFiles(owner, doomed)
    const asked = await owner.call('GET', `/api/videos/${doomed}/files/${original?.id}`)
    const { redirect } = (await asked.json()) as { redirect: string }
    const [, ...answers] = await Promise.all([owner.delete([doomed]), ...[1, 2, 3, 4].map(() => fetch(redirect))])
    for (const answer of answers) {
      expect([200, 404]).toContain(answer.status)
      await answer.arrayBuffer() // throws where fewer bytes come than were announced
    }
  }
})
