import { mkdir, rename, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import { dataPaths } from '../../src/config/data-paths.ts'
import { sendCommand } from '../../src/control/socket.ts'
import { blobOf, getStoredSource, hasFolder, listFiles, listSegments } from '../data-folder.ts'
import { type Reelgate, startReelgate } from '../in-process.ts'
import { changeRows, readRows } from '../rows.ts'
import { sampledTests } from '../sample.ts'
import { makeVideo } from '../videos.ts'
import { readMediaPlaylist } from '../viewer.ts'
import { type Receivers, startReceivers, webhooksOf } from '../webhooks/receiver.ts'

const { test, draw } = sampledTests('repairs of segments', 1)

let receivers: Receivers
beforeAll(async () => {
  receivers = await startReceivers()
})
afterAll(() => receivers.close())

/** A viewer who plays a finished video, whose owner hears of all events, and the address of its second segment. */
async function startPlaying() {
  const reelgate = await startReelgate({
    video: await makeVideo({ seconds: 9, dark: true }),
    env: { REELGATE_OUTBOUND_ALLOW: receivers.host },
  })
  const receiver = receivers.newReceiver()
  await webhooksOf(reelgate.owner).create(receiver.url)
  const viewer = reelgate.newViewer()
  await viewer.redeem(await reelgate.owner.issueOtp(reelgate.videoId))
  const [second] = listSegments(reelgate, reelgate.videoId).filter(({ number }) => number === 1)
  const { file, rendition_id } = second ?? expect.fail()
  const first = await viewer.playlist(String(rendition_id))
  const ask = async (number: number, playlist = first) => {
    const uri = readMediaPlaylist(playlist).segments[number]?.uri ?? ''
    return fetch(new URL(uri, `${reelgate.url}/play/${viewer.state.session}/playlist/`))
  }
  return { reelgate, receiver, viewer, ask, segment: blobOf(reelgate, 'segments', file), rendition: rendition_id }
}

/** Makes it impossible to encode a segment again with the bytes that were published. */
function changeChecksum(reelgate: Reelgate, rendition: number) {
  const other = Buffer.alloc(32, 1)
  expect(changeRows(reelgate, 'update segment set sha256 = ? where rendition_id = ? and number = 1', other, rendition)).toBe(1)
}

const videoRow = (reelgate: Reelgate) =>
  readRows<{ status: string; generation: number }>(
    reelgate,
    'select status, generation from video where id = ?',
    reelgate.videoId,
  )[0]

test('F-42: what does not come out with the same bytes is never put back: the video gets its next generation, and is ready all the time', async () => {
  const { reelgate, receiver, viewer, ask, segment, rendition } = await startPlaying()
  const { owner, videoId } = reelgate
  changeChecksum(reelgate, rendition)
  await segment.remove()
  expect((await ask(1)).status).toBe(503)
  const posterFiles = () =>
    readRows<{ blob: string }>(reelgate, `select blob from file where video_id = ? and type = 'poster'`, videoId).map(
      ({ blob }) => blob,
    )
  const oldPosters = posterFiles()
  for (let generation = 1; generation === 1; ) {
    const answer = await ask(0)
    const video = videoRow(reelgate) ?? expect.fail()
    expect(video.status).toBe('ready')
    if (video.generation === 1) expect(answer.status).toBe(200)
    generation = video.generation
  }

  const later = reelgate.newViewer()
  expect((await later.redeem(await owner.issueOtp(videoId))).playing).toBe(true)
  expect((await later.download(String(rendition))).segments).toHaveLength(3)
  await viewer.openPage()
  viewer.newPage()
  expect((await viewer.reopen()).body).toMatchObject({ code: 'session-ended', why: 'video-replaced' })
  await expect.poll(() => hasFolder(reelgate, 'segments', `${videoId}/1`)).toBe(false)
  const posters = () => listFiles(reelgate, 'posters')
  await expect.poll(async () => (await posters()).some((name) => oldPosters.includes(name))).toBe(false)
  expect(await posters()).toEqual(expect.arrayContaining(posterFiles()))
  expect(readRows(reelgate, `select 1 from file where video_id = ? and type = 'poster' and enabled = 1`, videoId)).toHaveLength(
    oldPosters.length,
  )
  // The owner was notified of nothing: the next event is of what is done now.
  await owner.delete([videoId])
  expect((await receiver.until(1)).map(({ event }) => event.event)).toEqual(['video:deleted'])
})

test('F-42: a video that has lost a segment and its source becomes an Encoding error with a reason, and its owner gets an event', async () => {
  const { reelgate, receiver, ask, segment } = await startPlaying()
  await segment.remove()
  await blobOf(reelgate, 'sources', getStoredSource(reelgate, reelgate.videoId).blob).remove()
  expect((await ask(1)).status).toBe(503)
  const [audible] = await receiver.until(1)
  expect(audible?.event).toMatchObject({ event: 'video:failed', payload: { id: reelgate.videoId, status: 'Encoding error' } })
  expect(readRows(reelgate, 'select status, status_reason from video where id = ?', reelgate.videoId)).toEqual([
    {
      status: 'Encoding error',
      status_reason:
        'A part of the video was lost on this server’s disk, and so was the uploaded file. Check the disk and upload the video again.',
    },
  ])
})

test('F-271: a part that its owner has encoded again is compared, and plays meanwhile; only other bytes than those stored change the video', async () => {
  const { reelgate, ask, segment, rendition } = await startPlaying()
  const { owner, videoId } = reelgate
  const encodeAt = async (positionS: number) =>
    (await owner.call('POST', `/api/videos/${videoId}/encode?positionS=${positionS}`)).status
  const attempts = () =>
    readRows<{ kind: string; attempt: number }>(
      reelgate,
      `select kind, sum(attempt) as attempt from chunk where video_id = ? group by kind order by kind`,
      videoId,
    ).map(({ attempt }) => attempt)
  const unfinished = () => readRows(reelgate, `select 1 from chunk where state != 'done' or compared = 1`)
  const [whole, [audioRuns = 0, videoRuns = 0]] = [await segment.read(), attempts()]
  expect(await encodeAt(5)).toBe(200)
  expect((await ask(1)).status).toBe(200)
  await expect.poll(unfinished).toEqual([])
  expect(attempts()).toEqual([audioRuns + 1, videoRuns + 1])
  expect(videoRow(reelgate)).toEqual({ status: 'ready', generation: 1 })
  expect(await segment.read()).toEqual(whole)
  const same = readRows(reelgate, `select subject, actor from audit_event where kind = 'video:part-same'`)
  expect(same).toEqual(Array(2).fill({ subject: videoId, actor: 'server' }))

  expect(await encodeAt(9.1)).toBe(400)
  changeChecksum(reelgate, rendition)
  expect(await encodeAt(5)).toBe(200)
  await expect.poll(() => videoRow(reelgate)).toEqual({ status: 'ready', generation: 2 })
  expect(readRows(reelgate, 'select 1 from segment where damaged = 1')).toEqual([])
})

test('F-43: a changed byte is not sent once it is found; while the disk of sources is away the video waits for it, then is repaired', async () => {
  const { reelgate, ask, viewer, segment, rendition } = await startPlaying()
  const { dataDir, videoId } = reelgate
  const whole = await segment.read()
  const flipped = Buffer.from(whole)
  flipped.writeUInt8(flipped.readUInt8(40) ^ 1, 40)
  await segment.write(flipped)
  const sources = join(dataDir, 'sources')
  await rename(sources, `${sources}.away`)
  await mkdir(sources) // where its disk is mounted
  const problem = 'its file has other bytes'
  const damaged = [{ videoId, generation: 1, renditionId: rendition, number: 1, problem, mayHaveBeenSent: true }]
  await sendCommand(dataPaths(dataDir).controlSocket, 'media checked', {
    damaged,
    damagedFiles: [],
    intactFiles: [],
  })
  expect((await ask(1)).status).toBe(404) // other bytes may be cached under this address
  const askForNew = async () => ask(1, await viewer.playlist(String(rendition)))
  expect((await askForNew()).status).toBe(503)
  await expect.poll(() => reelgate.output()).toContain('Mount its disk')
  expect(videoRow(reelgate)).toEqual({ status: 'ready', generation: 1 })
  await rmdir(sources)
  await rename(`${sources}.away`, sources)
  await expect.poll(async () => (await askForNew()).status).toBe(200)
  expect(Buffer.from(await (await askForNew()).arrayBuffer())).toEqual(whole)
})

test('F-42: a segment that was put back by hand is sent again without its source', async () => {
  const { reelgate, ask, segment } = await startPlaying()
  await blobOf(reelgate, 'sources', getStoredSource(reelgate, reelgate.videoId).blob).remove()
  const whole = await segment.read()
  await reelgate.stop()
  expect(changeRows(reelgate, `update segment set damaged = 1 where number = 1 and file like ?`, `%${segment.name}`)).toBe(1)
  changeRows(reelgate, `update chunk set state = 'pending' where first_segment <= 1 and first_segment + segment_count > 1`)
  await reelgate.restart()
  await expect.poll(async () => (await ask(1)).status).toBe(200)
  expect(Buffer.from(await (await ask(1)).arrayBuffer())).toEqual(whole)
})

draw()
