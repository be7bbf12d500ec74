import { openAsBlob } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { makeLanguages, TONES } from '../browser/tones.ts'
import type { UploadCredentials } from '../client.ts'
import { blobOf, hasFolder, listSegments, untilFinished } from '../data-folder.ts'
import { type Reelgate, startReelgate } from '../in-process.ts'
import { readRows } from '../rows.ts'
import { sampledTests } from '../sample.ts'
import { makeVideo } from '../videos.ts'
import { readMediaPlaylist } from '../viewer.ts'
import { startReceivers, webhooksOf } from '../webhooks/receiver.ts'
import { audibleIn, audioOf, claimEncoding, makeDub, near } from './dubs.ts'
import { play } from './replaced.ts'

// Audio tracks that are added to a video as files of their own.

const SECONDS = 10

async function startWithVideo(env: Record<string, string> = {}): Promise<Reelgate> {
  const reelgate = await startReelgate({ video: await makeLanguages(TONES.slice(0, 2), SECONDS), env })
  await untilFinished(reelgate, reelgate.videoId)
  return reelgate
}

const { test: sampled, draw } = sampledTests('audio tracks added later', 1)

const urisOf = (main: string) => Array.from(main.matchAll(/TYPE=AUDIO.*URI="([^"]+)"/g), ([, uri]) => uri)

test('T-10: an added audio track is audible at its time, as long as the video, in the key windows of the others, and is renamed, made the default and removed', async () => {
  const receivers = await startReceivers()
  const reelgate = await startWithVideo({ REELGATE_OUTBOUND_ALLOW: receivers.host })
  const { owner, videoId } = reelgate
  const receiver = receivers.newReceiver()
  await webhooksOf(owner).create(receiver.url, 'video:audio')
  const audio = audioOf(reelgate)
  const before = await owner.video(videoId)
  const watching = await play(reelgate)
  const formerMain = await watching.playlist('main')

  const id = await audio.add(await makeDub({ fromS: 3, toS: 5, seconds: 6 }), 'language=fr-CA&name=Doublage%20%22A%22')
  const ready = await audio.until(id, 'ready')
  const added = { id, name: 'Doublage A', language: 'fr-ca', default: false, state: 'ready', added: true, differenceS: -4 }
  expect(ready).toEqual({ ...added, differenceS: expect.closeTo(-4, 0), fileId: expect.any(Number) })
  expect((await audio.list()).map((track) => track.added)).toEqual([false, false, true])
  const [event] = await receiver.until(1)
  expect(event?.event).toMatchObject({
    event: 'video:audio',
    payload: { id: videoId, audioId: id, language: 'fr-ca', state: 'ready' },
  })
  const [withFile] = (await audio.list()).slice(-1)
  const { redirect } = (await (await owner.call('GET', `/api/videos/${videoId}/files/${withFile?.fileId}`)).json()) as {
    redirect: string
  }
  const dubFile = await readFile(await makeDub({ fromS: 3, toS: 5, seconds: 6 }))
  expect(Buffer.from(await (await fetch(redirect)).arrayBuffer())).toEqual(dubFile)
  const { lengthS, ...audible } = await audibleIn(await play(reelgate), id)
  expect(audible).toEqual({ fromS: near(3), toS: near(5) })
  const viewer = await play(reelgate)
  const playlists = await Promise.all(['2', String(id)].map(async (uri) => readMediaPlaylist(await viewer.playlist(uri))))
  const [others, own] = playlists.map(({ segments }) => segments)
  expect(own?.map(({ keyUri, durationS }) => [keyUri, durationS])).toEqual(
    others?.map(({ keyUri, durationS }) => [keyUri, durationS]),
  )
  expect(lengthS).toBeCloseTo(SECONDS, 1)
  const ivs = playlists.flatMap(({ segments }) => segments.map(({ iv }) => iv.toString('hex')))
  expect(new Set(ivs).size).toBe(ivs.length)

  // A session from before goes on with what its player has, and finds the new track when its page is opened again.
  expect(urisOf(formerMain)).toEqual(['2', '3'])
  expect((await watching.download('2')).segments.length).toBeGreaterThan(1)
  expect(urisOf(await watching.playlist('main'))).toEqual(['2', '3', String(id)])

  expect((await audio.put(id, { name: 'Québec', default: true })).status).toBe(200)
  expect(await (await play(reelgate)).playlist('main')).toContain(
    `NAME="Québec",LANGUAGE="fr-ca",DEFAULT=YES,AUTOSELECT=YES,CHANNELS="2",URI="${id}"`,
  )
  expect((await owner.video(videoId)).totalSizeBytes).toBeGreaterThan(before.totalSizeBytes)
  expect((await audio.remove(2)).status).toBe(409) // a track of the video's own file
  const file = sourceFiles(reelgate).at(-1) ?? ''
  expect((await audio.remove(id)).status).toBe(200)
  expect((await audio.list()).map((track) => [track.id, track.default])).toEqual([
    [2, true],
    [3, false],
  ])
  expect(urisOf(await (await play(reelgate)).playlist('main'))).toEqual(['2', '3'])
  const gone = [
    await watching.call('playlist', String(id)),
    await fetch(new URL(own?.[0]?.uri ?? '', `${reelgate.url}/play/x/playlist/`)),
  ]
  for (const answer of gone) expect([answer.status, await answer.json()]).toMatchObject([404, { code: 'file-gone' }]) // its players go on with another one
  expect((await owner.video(videoId)).totalSizeBytes).toBe(before.totalSizeBytes)
  await expect.poll(() => blobOf(reelgate, 'sources', file).exists()).toBe(false)
  expect(await hasFolder(reelgate, 'segments', `${videoId}/1/${id}`)).toBe(false)
  expect((await audio.remove(id)).status).toBe(404)
  // Its number is not given again: caches keep its segments for a year.
  expect(await audio.add(await makeDub({ fromS: 3, toS: 5, seconds: 6 }))).toBeGreaterThan(id)
  await receivers.close()
})

sampled('T-11: a longer audio track is cut to the video, and a file without sound changes nothing', async () => {
  const reelgate = await startWithVideo()
  const audio = audioOf(reelgate)
  const before = await audio.list()
  const bad = audio.send(new Blob(['not audio, whatever its name']), 'language=fr').then(async (response) => {
    expect(response.status).toBe(200)
    return ((await response.json()) as { tracks: { id: number }[] }).tracks.at(-1)?.id ?? 0
  })
  const failed = await audio.until(await bad, 'failed')
  expect(failed.error).toBe('This file has no sound that can be decoded. Convert it to AAC, MP3 or WAV, and add it again.')
  const silent = await audio.add(await makeVideo({ audioTrack: false }))
  expect((await audio.until(silent, 'failed')).error).toBe(failed.error)
  expect((await audio.put(silent, { name: 'A' })).status).toBe(409)
  for (const id of [await bad, silent]) expect((await audio.remove(id)).status).toBe(200)
  expect(await audio.list()).toEqual(before)

  const longer = await audio.add(await makeDub({ fromS: 8, toS: 14, seconds: 14, extension: '.mp3' }))
  expect((await audio.until(longer, 'ready')).differenceS).toBeCloseTo(4, 0)
  const audible = await audibleIn(await play(reelgate), longer)
  expect(audible.fromS).toEqual(near(8))
  expect(audible.lengthS).toBeCloseTo(SECONDS, 1)
  const nearly = await audio.add(await makeDub({ fromS: 1, toS: 2, seconds: 11, extension: '.ts' }))
  expect((await audio.until(nearly, 'ready')).differenceS).toBeUndefined() // less than 2 s
  expect((await audibleIn(await play(reelgate), nearly)).fromS).toEqual(near(1))

  const answers = [
    audio.send(new Blob(['x']), 'name=A'),
    audio.send(new Blob(['x']), 'language=%21'),
    reelgate.owner.call('POST', `/api/videos/${reelgate.videoId}/audio?language=fr`, { body: {} }),
  ]
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([400, 400, 400])
})

test('T-26: while an added audio track is encoded, its owner reads how much of it is', async () => {
  const reelgate = await startWithVideo()
  const audio = audioOf(reelgate)
  const claim = claimEncoding(reelgate, reelgate.videoId)
  const id = await audio.add(await makeDub({ fromS: 3, toS: 5, seconds: 6 }))
  expect((await audio.list()).at(-1)).toMatchObject({ state: 'waiting' })
  claim.hasEncoded(0.4)
  expect((await audio.list()).at(-1)).toMatchObject({ id, state: 'encoding', progress: 0.4 })
  claim.end()
  await audio.add(await makeDub({ fromS: 1, toS: 2, seconds: 3 })) // the server looks for work
  expect((await audio.until(id, 'ready')).progress).toBeUndefined()
  const [{ progress = 0 } = {}] = readRows<{ progress: number }>(reelgate, 'select progress from dub order by source_number')
  expect(progress).toBeGreaterThan(0) // as it was while it was encoded, after the first segment
  expect(progress).toBeLessThan(1)
})

sampled('T-12: a video without sound gets its first audio track, which is repaired like any other', async () => {
  const reelgate = await startReelgate({ video: await makeVideo({ audioTrack: false, seconds: 6 }) })
  await untilFinished(reelgate, reelgate.videoId)
  const audio = audioOf(reelgate)
  const id = await audio.add(await makeDub({ fromS: 2, toS: 4, seconds: 6 }))
  await audio.until(id, 'ready')
  expect(await audio.list()).toMatchObject([{ id, default: true }])
  expect(await audibleIn(await play(reelgate), id)).toMatchObject({ fromS: near(2), toS: near(4) })
  const broken = listSegments(reelgate, reelgate.videoId).find(({ rendition_id, number }) => rendition_id === id && number === 1)
  const stored = blobOf(reelgate, 'segments', broken?.file)
  const published = await stored.read()
  await stored.write(published.subarray(0, 100))
  expect(await audibleIn(await play(reelgate), id)).toMatchObject({ fromS: near(2), toS: near(4) })
  expect(await stored.read()).toEqual(published)
  expect((await audio.remove(id)).status).toBe(200)
  expect(await (await play(reelgate)).playlist('main')).not.toContain('TYPE=AUDIO')
})

sampled(
  'T-13: an added audio track is cut with a trim in the same place, is there again after an undo, is encrypted again, and goes with a replaced file',
  async () => {
    const reelgate = await startWithVideo()
    const { owner, videoId } = reelgate
    const audio = audioOf(reelgate)
    const id = await audio.add(await makeDub({ fromS: 3, toS: 7, seconds: 10 }))
    await audio.until(id, 'ready')
    const trim = async (body: object) => {
      expect((await owner.call('PUT', `/api/videos/${videoId}/trim`, { body })).status).toBe(200)
      await expect.poll(async () => (await owner.video(videoId)).replacement).toBeUndefined()
    }
    const audible = async (track = id) => audibleIn(await play(reelgate), track)
    await trim({ startS: 2, endS: 8 })
    expect(await audible()).toEqual({ fromS: near(1), toS: near(5), lengthS: expect.closeTo(6, 1) })

    // One that is added now belongs to what is kept of the video; with all of the video it begins where that began.
    const late = await audio.add(await makeDub({ fromS: 1, toS: 2, seconds: 6 }))
    await audio.until(late, 'ready')
    expect((await audible(late)).fromS).toEqual(near(1))
    expect((await owner.call('POST', `/api/videos/${videoId}/undo`)).status).toBe(200)
    await audio.until(late, 'ready')
    expect(await audible(late)).toEqual({ fromS: near(3), toS: near(4), lengthS: expect.closeTo(10, 1) })
    expect(await audible()).toMatchObject({ fromS: near(3), toS: near(7) })
    await trim({ startS: 1, endS: 10 })
    expect([(await audible()).fromS, (await audible(late)).fromS]).toEqual([near(2), near(2)])

    const [{ generation = 0 } = {}] = readRows<{ generation: number }>(
      reelgate,
      'select generation from video where id = ?',
      videoId,
    )
    expect((await reelgate.cli('video', 'reencrypt', videoId)).code).toBe(0)
    const playing = () => readRows<{ generation: number }>(reelgate, 'select generation from video where id = ?', videoId)
    await expect.poll(() => playing()[0]?.generation ?? 0).toBeGreaterThan(generation)
    expect([(await audible()).fromS, (await audible(late)).fromS]).toEqual([near(2), near(2)])

    const issued = (await (await owner.call('PUT', `/api/videos/${videoId}`)).json()) as UploadCredentials
    expect((await owner.send(issued, await openAsBlob(await makeVideo({ seconds: 4 })))).status).toBe(201)
    await expect.poll(async () => (await owner.video(videoId)).length).toBeCloseTo(4, 1)
    expect((await audio.list()).map((track) => track.added)).toEqual([false])
    expect((await owner.call('POST', `/api/videos/${videoId}/undo`)).status).toBe(200)
    expect((await audio.list()).filter((track) => track.added).map((track) => [track.id, track.state])).toEqual([
      [id, 'ready'],
      [late, 'ready'],
    ])
    expect((await owner.call('POST', `/api/videos/${videoId}/undo`)).status).toBe(200)
    expect((await owner.call('DELETE', `/api/videos/${videoId}/kept`)).status).toBe(200)
    expect(sourceFiles(reelgate)).toHaveLength(1)
    expect(readRows(reelgate, 'select * from dub')).toEqual([])
  },
)

sampled('T-15: an added audio track whose file and segment are lost is left out, says why, and the video plays on', async () => {
  const reelgate = await startWithVideo()
  const { owner, videoId } = reelgate
  const audio = audioOf(reelgate)
  const id = await audio.add(await makeDub({ fromS: 3, toS: 5, seconds: 6 }))
  await audio.until(id, 'ready')
  await blobOf(reelgate, 'sources', sourceFiles(reelgate).at(-1)).remove()
  const broken = listSegments(reelgate, videoId).find(({ rendition_id }) => rendition_id === id)
  await blobOf(reelgate, 'segments', broken?.file).remove()
  const [path] = /\S+\/0\.m4s/.exec(await (await play(reelgate)).playlist(String(id))) ?? []
  void fetch(new URL(path ?? '', `${reelgate.url}/play/x/playlist/`)).catch(() => undefined) // waits until it is repaired
  await audio.until(id, 'failed')
  await expect.poll(async () => (await audio.list()).find((track) => track.id === id)?.error).toMatch(/was lost or changed/)
  expect((await owner.video(videoId)).status).toBe('ready')
  expect(urisOf(await (await play(reelgate)).playlist('main'))).toEqual(['2', '3'])
  expect((await audio.remove(id)).status).toBe(200)
})

draw()

const sourceFiles = (reelgate: Reelgate) =>
  readRows<{ file: string }>(reelgate, 'select file from source where video_id = ? order by number', reelgate.videoId).map(
    ({ file }) => file,
  )
