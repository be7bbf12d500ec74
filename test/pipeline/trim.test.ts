import { expect, test } from 'vitest'
import { addFile, listFiles } from '../assets/sample-files.ts'
import type { VideoBody } from '../client.ts'
import { untilFinished } from '../data-folder.ts'
import { type Reelgate, startReelgate } from '../in-process.ts'
import { makeVideo } from '../videos.ts'
import type { Viewer } from '../viewer.ts'
import { haveWatched } from '../viewers/watched.ts'
import { play } from './replaced.ts'

// A part of the file instead of all of it: PUT /api/videos/{id}/trim.

test('X39: a video is trimmed, trimmed again and made whole; sessions continue, and watched seconds move with the scenes', async () => {
  const reelgate = await startReelgate({ video: await makeVideo({ seconds: 12, size: '96x64' }) })
  const { owner, videoId } = reelgate
  await untilFinished(reelgate, videoId)
  const before = await owner.video(videoId)
  haveWatched(reelgate, 'ann', 8)
  const watching = await play(reelgate)
  const first = await watching.download('1')

  expect((await trim(reelgate, { startS: 6, endS: 20 })).status).toBe(400)
  const asked = await trim(reelgate, { startS: 3, endS: 10 })
  expect([asked.status, await asked.json()]).toEqual([200, { message: 'Trimming', startS: 3, endS: 10 }])
  const trimmed = await untilMade(reelgate)
  expect(trimmed.length).toBeCloseTo(7, 1)
  expect(trimmed).toMatchObject({ trim: { startS: 3, endS: 10 }, kept: [{ length: before.length, replacedBy: 'trim' }] })
  expect(trimmed.poster).not.toBe(before.poster)
  expect(await watchedBy(reelgate)).toEqual({ watchedS: 5, intervals: [[0, 5]], positionS: 5 })
  expect((await watching.download('1')).segments).toEqual(first.segments)

  // The same seconds of the file, however it is trimmed now.
  expect((await trim(reelgate, { startS: 1, endS: 5 })).status).toBe(200)
  expect((await untilMade(reelgate)).trim).toMatchObject({ startS: 1, endS: 5 })
  expect(await watchedBy(reelgate)).toEqual({ watchedS: 4, intervals: [[0, 4]], positionS: expect.closeTo(4, 0) })

  expect((await owner.call('POST', `/api/videos/${videoId}/undo`)).status).toBe(200)
  expect((await owner.video(videoId)).trim).toMatchObject({ startS: 3, endS: 10 })
  expect((await trim(reelgate, {})).status).toBe(200)
  const whole = await untilMade(reelgate)
  expect([whole.length, whole.trim]).toEqual([before.length, undefined])
  expect(await watchedBy(reelgate)).toEqual({ watchedS: 8, intervals: [[0, 8]], positionS: 8 })
})

test('X60: a trim moves chapters and captions with the scenes, an undo brings back all, and those set after a trim fit the whole; the owner sees how many do not fit', async () => {
  const reelgate = await startReelgate({ video: await makeVideo({ seconds: 12, size: '96x64' }) })
  const { owner, videoId } = reelgate
  await untilFinished(reelgate, videoId)
  const chapters = (...startsS: number[]) => startsS.map((startS) => ({ startS, title: `At ${startS}` }))
  const put = (list: object) => owner.call('PUT', `/api/videos/${videoId}/chapters`, { body: { chapters: list } })
  expect((await put(chapters(0, 2, 4, 11))).status).toBe(200)
  const cue = (times: string, text: string) => `00:00:${times.replace(' ', ' --> 00:00:')}\n${text}\n`
  const webVtt = (...cues: string[]) => ['WEBVTT\n', ...cues].join('\n')
  const sent = webVtt(cue('00.500 02.000', 'Gone'), cue('02.500 04.500 align:start', 'Cut'), cue('06.000 07.250', 'Two\nlines'))
  expect((await addFile(owner, videoId, sent, 'en')).status).toBe(200)
  const before = await shownIn(reelgate, await play(reelgate))
  expect(before).toMatchObject({ session: chapters(0, 2, 4, 11), api: chapters(0, 2, 4, 11), captions: sent, file: sent })
  expect(before.doesNotFit).toEqual({ chapters: undefined, captions: undefined })
  const watching = await play(reelgate)

  expect((await trim(reelgate, { startS: 3, endS: 10 })).status).toBe(200)
  await untilMade(reelgate)
  const moved = [
    { startS: 0, title: 'At 2' },
    { startS: 1, title: 'At 4' },
  ]
  const movedText = webVtt(cue('00.000 01.500 align:start', 'Cut'), cue('03.000 04.250', 'Two\nlines'))
  const trimmed = await shownIn(reelgate, await play(reelgate))
  expect(trimmed).toMatchObject({ session: moved, api: moved, captions: movedText, file: movedText })
  expect(trimmed.version).not.toBe(before.version)
  expect(trimmed.doesNotFit).toEqual({ chapters: 2, captions: 1 })
  expect(await captionsOf(watching)).toBe(sent)

  expect((await owner.call('POST', `/api/videos/${videoId}/undo`)).status).toBe(200)
  expect(await shownIn(reelgate, await play(reelgate))).toEqual({ ...before })

  // Set while the part plays, in its seconds: three later in the whole.
  expect((await owner.call('POST', `/api/videos/${videoId}/undo`)).status).toBe(200)
  expect((await put(moved)).status).toBe(200)
  expect((await addFile(owner, videoId, movedText, 'en')).status).toBe(200)
  expect(await shownIn(reelgate, await play(reelgate))).toMatchObject({ session: moved, captions: movedText, file: movedText })
  expect((await owner.call('POST', `/api/videos/${videoId}/undo`)).status).toBe(200)
  expect(await shownIn(reelgate, await play(reelgate))).toMatchObject({
    session: moved.map(({ startS, title }) => ({ startS: startS + 3, title })),
    captions: webVtt(cue('03.000 04.500 align:start', 'Cut'), cue('06.000 07.250', 'Two\nlines')),
  })
})

test('F-187: a trim to exactly what plays already changes nothing, and nothing is encoded', async () => {
  const reelgate = await startReelgate({ video: await makeVideo({ seconds: 12, size: '96x64' }) })
  const { owner, videoId } = reelgate
  await untilFinished(reelgate, videoId)
  const audited = async () =>
    ((await (await owner.call('GET', '/api/audit-log?limit=100')).json()) as { rows: { kind: string }[] }).rows.filter(
      ({ kind }) => kind === 'video:trimmed',
    ).length
  const unchanged = async (body: { startS?: number; endS?: number }) => {
    const before = [await owner.video(videoId), await audited()]
    const answer = await trim(reelgate, body)
    expect([answer.status, await answer.json()]).toMatchObject([200, { message: 'Unchanged' }])
    expect([await owner.video(videoId), await audited()]).toEqual(before)
  }
  await unchanged({})
  await unchanged({ startS: 0, endS: 12 })
  expect((await trim(reelgate, { startS: 3, endS: 10 })).status).toBe(200)
  await untilMade(reelgate)
  await unchanged({ startS: 3.001, endS: 10 }) // the same frame
  expect((await trim(reelgate, { startS: 3, endS: 9.9 })).status).toBe(200)
  expect((await untilMade(reelgate)).length).toBeCloseTo(6.9, 1)
})

/** Chapters and captions, to players and to the owner. */
async function shownIn({ owner, videoId }: Reelgate, viewer: Viewer) {
  const { video } = (await viewer.reopen()).body as { video: { chapters: { chapters: unknown } } }
  const api = (await (await owner.call('GET', `/api/videos/${videoId}/chapters`)).json()) as {
    chapters: unknown
    doesNotFit?: number
  }
  const caption = (await listFiles(owner, videoId)).findLast(({ type }) => type === 'caption')
  const address = await owner.call('GET', `/api/videos/${videoId}/files/${caption?.id}`)
  const file = await fetch(((await address.json()) as { redirect: string }).redirect)
  return {
    session: video.chapters.chapters,
    api: api.chapters,
    doesNotFit: { chapters: api.doesNotFit, captions: caption?.doesNotFit },
    captions: await captionsOf(viewer),
    version: file.headers.get('etag'),
    file: await file.text(),
  }
}

async function captionsOf(viewer: Viewer): Promise<string> {
  const [name = ''] = /caption-\d+/.exec(await viewer.playlist('main')) ?? []
  return (await viewer.call('file', name)).text()
}

function trim({ owner, videoId }: Reelgate, body: { startS?: number; endS?: number }) {
  return owner.call('PUT', `/api/videos/${videoId}/trim`, { body })
}

async function untilMade({ owner, videoId }: Reelgate): Promise<VideoBody> {
  await expect.poll(async () => (await owner.video(videoId)).replacement).toBe(undefined)
  return owner.video(videoId)
}

async function watchedBy({ owner, videoId }: Reelgate) {
  const response = await owner.call('GET', `/api/videos/${videoId}/viewers`)
  const { rows } = (await response.json()) as {
    rows: { userId: string; watchedS: number; intervals: unknown; positionS: number }[]
  }
  const { watchedS, intervals, positionS } = rows.find(({ userId }) => userId === 'ann') ?? {}
  return { watchedS, intervals, positionS }
}
