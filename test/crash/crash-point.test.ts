import { randomBytes } from 'node:crypto'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { dataPaths } from '../../src/config/data-paths.ts'
import { sendCommand } from '../../src/control/socket.ts'
import { addFile, listFiles as filesOf, makeImage, SRT } from '../assets/sample-files.ts'
import { NoAnswer } from '../client.ts'
import { listFiles } from '../data-folder.ts'
import { createTusClient, type TusClient } from '../ingest/tus-client.ts'
import { type Reelgate, startSharedReelgate } from '../reelgate.ts'
import { changeRows, readRows } from '../rows.ts'
import { sampleOf } from '../sample.ts'
import { newChance, rounds } from '../seeded-random.ts'
import { type Receiver, type Receivers, startReceivers, webhooksOf } from '../webhooks/receiver.ts'
import { noVideo, uniqueVideo } from './clients.ts'
import { type CrashTest, newCrashTest } from './crash-harness.ts'
import { type CrashPoint, killAt, watch } from './strace.ts'

// SQLite's way of testing crashes: one short scenario, killed before its first system call that changes something, its second, …
// until it runs through. Each time the folder is examined, the server started again, and every promise compared with what is there.

/** What is ready before the scenario's call is sent, and the call; it has ended when everything that it set off is done. */
type Scenario = {
  rows: string
  name: string
  prepare(crashTest: CrashTest): Promise<() => Promise<unknown>>
  /** What must come true, besides everything that always must, once the server is there again. */
  comeTrue?(): Promise<void>
}

const SCENARIOS: readonly Scenario[] = [
  { rows: 'I1, I9', name: 'credentials', prepare: credentials },
  { rows: 'I1, I9', name: 'an upload', prepare: uploadOf },
  { rows: 'F-02, I1, I9', name: 'the finish of an upload, after its last byte', prepare: finishOfUpload },
  { rows: 'X29, I1, I9', name: 'the beginning of a resumable upload', prepare: beginningOfParts },
  { rows: 'X29, I1', name: 'a part of a resumable upload', prepare: aPart },
  { rows: 'X29, I1, I9', name: 'the last part of a resumable upload', prepare: lastPart },
  { rows: 'X55, I1, I9', name: 'the beginning of an upload by a token', prepare: beginningByToken, comeTrue: findTokenFiles },
  { rows: 'X55, I1', name: 'a part of an upload by a token', prepare: aPartByToken, comeTrue: findTokenFiles },
  { rows: 'X55, I1, I9', name: 'the last part of an upload by a token', prepare: lastPartByToken, comeTrue: findTokenFiles },
  { rows: 'I5, I9', name: 'tagging and renaming', prepare: tagging },
  { rows: 'I4, I9', name: 'an OTP', prepare: issuing },
  { rows: 'O04, I4', name: 'a redeem', prepare: redeeming },
  { rows: 'P10, I9', name: 'a key that takes a stream’s slot', prepare: takingASlot },
  { rows: 'F-31, I1, I8', name: 'a caption, to its row', prepare: adding('caption'), comeTrue: findAdded },
  { rows: 'F-31, I1, I8', name: 'a poster, to the rows of its sizes', prepare: adding('poster'), comeTrue: findAdded },
  { rows: 'F-05, I2', name: 'a deletion, to its last file', prepare: deletion },
  { rows: 'F-06, I3, I6', name: 'publication, from the probe to the last segment and poster', prepare: publication },
  { rows: 'F-42, I3', name: 'the repair of a lost segment', prepare: repairing, comeTrue: findRepaired },
  { rows: 'W07, I7', name: 'an event, to the record of its delivery', prepare: delivery, comeTrue: hearAll },
]

let receivers: Receivers
let reelgate: Reelgate & { remove(): Promise<void> }
let crashTest: CrashTest
const chance = newChance('crash points')
beforeAll(async () => {
  // One thread for files, so that the n-th call is the same call each time.
  receivers = await startReceivers()
  reelgate = await startSharedReelgate({ env: { UV_THREADPOOL_SIZE: '1', REELGATE_OUTBOUND_ALLOW: receivers.host } })
  crashTest = await newCrashTest(reelgate, chance, 'crash-points')
  const { clients, videos } = crashTest
  const { videoId = '' } = await clients.create(0)
  await clients.upload(0, videoId, { clear: videos[0] ?? Buffer.alloc(0), isVideo: true })
  await reelgate.owner.until(videoId, 'ready')
  expect(await crashTest.compare()).toEqual([])
})
afterAll(async () => {
  await reelgate.remove()
  await receivers.close()
})

for (const { rows, name, prepare, comeTrue } of sampleOf('crash scenarios', SCENARIOS, 1)) {
  test(`${rows}: ${name} survives kill -9 before each of its system calls`, async () => {
    await untilPicturesMade()
    const all = await findPoints(prepare)
    const points = choose(all)
    let kills = 0
    for (const point of points) {
      const act = await prepare(crashTest)
      const attached = await killAt(reelgate.pid, point)
      await act()
      await attached.detach()
      kills += Number(!(await isServing(reelgate)))
      await reelgate.kill()
      expect(await crashTest.afterwards(), `killed before ${point.syscall} ${point.nth}`).toEqual([])
      await comeTrue?.()
    }
    expect(await crashTest.settled()).toEqual([])
    process.stderr.write(`${name}: ${all.length} places, ${points.length} tried, ${kills} kills\n`)
  }, 3_600_000)
}

/** A server that was killed three times while it made the pictures of a video gives them up, with an error. */
async function untilPicturesMade() {
  const unmade = 'select 1 from generation where storyboard_made_at_s is null'
  while (readRows(reelgate, unmade).length > 0) await pause(20)
}

/** The places that an undisturbed scenario passes. */
async function findPoints(prepare: Scenario['prepare']): Promise<CrashPoint[]> {
  const act = await prepare(crashTest)
  const watched = await watch(reelgate.pid, join(reelgate.dataDir, '..', 'places'))
  await act()
  const points = await watched.points()
  expect(await crashTest.compare()).toEqual([])
  return points
}

/** All, or one of each scenario: of any system call as likely as of another. */
function choose(points: readonly CrashPoint[]): readonly CrashPoint[] {
  const pick = <T>(from: readonly T[]): T[] => [...from].splice(Math.floor(chance.between(0, from.length)), 1)
  const [sameCalls = []] = pick([...Map.groupBy(points, ({ syscall }) => syscall).values()])
  return rounds(0, 1) ? points : pick(sameCalls)
}

async function isServing({ url }: Reelgate): Promise<boolean> {
  return fetch(`${url}/healthz`).then(
    ({ ok }) => ok,
    () => false,
  )
}

/** Waits until the scenario has had all its consequences, or has lost its server. */
async function untilQuiet({ isQuiet, reelgate: server }: CrashTest): Promise<void> {
  while (!isQuiet() && (await isServing(server))) await pause(20)
}

async function newVideo({ clients, videos }: CrashTest): Promise<string> {
  const { videoId = '' } = await clients.create(0)
  await clients.upload(0, videoId, { clear: uniqueVideo(videos[0] ?? Buffer.alloc(0)), isVideo: true })
  return videoId
}

async function credentials({ clients }: CrashTest): Promise<() => Promise<unknown>> {
  return () => clients.create(0)
}

async function issuing({ clients, world }: CrashTest): Promise<() => Promise<unknown>> {
  const videoId = aReadyVideo(world)
  return () => clients.issueOtp(0, videoId, 'v2')
}

async function uploadOf({ clients }: CrashTest): Promise<() => Promise<unknown>> {
  const { videoId = '' } = await clients.create(0)
  return () => clients.upload(0, videoId, { clear: noVideo(300_000), isVideo: false })
}

/** All but the last byte has arrived before the scenario begins. */
async function finishOfUpload({ clients, reelgate: server }: CrashTest): Promise<() => Promise<unknown>> {
  const { videoId = '' } = await clients.create(0)
  const last = Promise.withResolvers<void>()
  const sending = clients.upload(0, videoId, { clear: noVideo(300_000), isVideo: false }, () => last.promise)
  await expect.poll(() => listFiles(server, 'tmp')).not.toEqual([])
  return async () => {
    last.resolve()
    await sending
  }
}

async function beginningOfParts({ clients }: CrashTest): Promise<() => Promise<unknown>> {
  return () => clients.beginParts(0, { clear: noVideo(300_000), isVideo: false })
}

/** The second one, which does not end with a block of the cipher, and begins behind one that did not. */
async function aPart({ clients }: CrashTest): Promise<() => Promise<unknown>> {
  const { videoId = '' } = await clients.beginParts(0, { clear: noVideo(300_000), isVideo: false })
  await clients.sendPart(0, videoId, 100_001)
  return () => clients.sendPart(0, videoId, 100_003)
}

async function lastPart({ clients }: CrashTest): Promise<() => Promise<unknown>> {
  const { videoId = '' } = await clients.beginParts(0, { clear: noVideo(300_000), isVideo: false })
  await clients.sendPart(0, videoId, 200_001)
  return () => clients.sendPart(0, videoId, 100_000)
}

const PAGE = 'https://school.example'

/** What a page of the owner's sends, with a token for one file. */
async function pageOf({ reelgate: { owner } }: CrashTest): Promise<TusClient> {
  const made = await owner.call('POST', '/api/upload-tokens', { body: { origin: PAGE, titlePattern: '*' } })
  const { token } = (await made.json()) as { token: string }
  return createTusClient(owner, `Bearer ${token}`, { Origin: PAGE })
}

async function beginningByToken(of: CrashTest) {
  const page = await pageOf(of)
  return () => of.clients.beginParts(0, { clear: noVideo(300_000), isVideo: false }, page)
}

async function aPartByToken(of: CrashTest): Promise<() => Promise<unknown>> {
  const begin = await beginningByToken(of)
  const { videoId = '' } = await begin()
  await of.clients.sendPart(0, videoId, 100_001)
  return () => of.clients.sendPart(0, videoId, 100_003)
}

async function lastPartByToken(of: CrashTest): Promise<() => Promise<unknown>> {
  const begin = await beginningByToken(of)
  const { videoId = '' } = await begin()
  await of.clients.sendPart(0, videoId, 200_001)
  return () => of.clients.sendPart(0, videoId, 100_000)
}

/** A token has lost a file for each video that it began, and for no other. */
async function findTokenFiles(): Promise<void> {
  const sql = `select files, (select count(*) from video where upload_token_id = upload_token.id) as videos from upload_token`
  for (const { files, videos } of readRows<{ files: number; videos: number }>(reelgate, sql)) expect(files).toBe(videos)
}

/** From the answer to the upload on, which the probe follows. */
async function publication(of: CrashTest): Promise<() => Promise<unknown>> {
  await newVideo(of)
  return () => untilQuiet(of)
}

async function tagging({ clients }: CrashTest): Promise<() => Promise<unknown>> {
  const made = [await clients.create(0), await clients.create(0)]
  const videoIds = made.flatMap(({ videoId }) => videoId ?? [])
  await clients.tag(0, 'add', videoIds, ['before'])
  return async () => {
    await clients.tag(0, 'add', videoIds, ['one', 'two'])
    await clients.tag(0, 'replace', videoIds, ['two', 'three'])
    await clients.tag(0, 'remove', videoIds, ['three'])
    await clients.edit(0, videoIds[0] ?? '')
  }
}

async function redeeming({ clients, world }: CrashTest): Promise<() => Promise<unknown>> {
  const videoId = aReadyVideo(world)
  const { otp = '' } = await clients.issueOtp(0, videoId)
  return () => clients.redeem(0, { otp, videoId })
}

/** The first key of a session takes the one slot of its viewer. */
async function takingASlot({ clients, world }: CrashTest): Promise<() => Promise<unknown>> {
  const videoId = aReadyVideo(world)
  const { otp = '' } = await clients.issueOtp(0, videoId, 'current', { userId: randomBytes(4).toString('hex'), streamLimit: 1 })
  const { viewer } = await clients.redeem(0, { otp, videoId })
  return () => clients.askKey(0, { viewer, videoId })
}

const FILES_ADDED = { caption: 1, poster: 2 }
const additions: { videoId: string; type: keyof typeof FILES_ADDED; isAnswered: boolean }[] = []

function adding(type: keyof typeof FILES_ADDED): Scenario['prepare'] {
  return async ({ clients, reelgate: { owner } }) => {
    const { videoId = '' } = await clients.create(0)
    const bytes = type === 'caption' ? SRT : await makeImage('640x360')
    return async () => {
      const isAnswered = await addFile(owner, videoId, bytes, type === 'caption' ? 'en' : undefined).then(
        ({ ok }) => ok,
        (error) => {
          if (error instanceof NoAnswer) throw error
          return false
        },
      )
      additions.push({ videoId, type, isAnswered })
    }
  }
}

/** What was answered is listed; what was not is listed whole or not at all. */
async function findAdded(): Promise<void> {
  for (const { videoId, type, isAnswered } of additions.splice(0)) {
    const listed = await filesOf(reelgate.owner, videoId)
    const wanted = Array.from({ length: FILES_ADDED[type] }, () => expect.objectContaining({ type, enabled: 1 }))
    if (isAnswered || listed.length > 0) expect(listed).toEqual(wanted)
  }
}

/** A video with all its files, and a video that has none yet. */
async function deletion(of: CrashTest): Promise<() => Promise<unknown>> {
  const video = await newVideo(of)
  const { videoId = '' } = await of.clients.create(0)
  await expect.poll(of.isQuiet).toBe(true)
  return async () => {
    await of.clients.remove(0, [video, videoId])
    await untilQuiet(of)
  }
}

type LostSegment = {
  key: { videoId: string; generation: number; renditionId: number; number: number }
  path: string
  bytes: Buffer
}
const lost: LostSegment[] = []

/** A finished video that has lost the first segment of its sound, from the order to repair it on. */
async function repairing(of: CrashTest): Promise<() => Promise<unknown>> {
  // The sweep would be quicker than the order.
  changeRows(
    reelgate,
    `insert into setting (name, value) values ('media-sweep', '{"beganAtS":10000000000}') on conflict do nothing`,
  )
  const videoId = await newVideo(of)
  await expect.poll(of.isQuiet).toBe(true)
  const [row] = readRows<{ id: number; file: string }>(
    reelgate,
    `select rendition.id, file from segment join rendition on rendition.video_id = segment.video_id and rendition.id = rendition_id
     where segment.video_id = ? and kind = 'audio' and number = 0`,
    videoId,
  )
  const path = join(reelgate.dataDir, 'segments', row?.file ?? '')
  const segment = { key: { videoId, generation: 1, renditionId: row?.id ?? 0, number: 0 }, path, bytes: await readFile(path) }
  changeRows(
    reelgate,
    'update segment set damaged = 1 where video_id = ? and rendition_id = ? and number = 0',
    videoId,
    row?.id ?? 0,
  )
  await rm(path)
  lost.push(segment)
  return async () => {
    await orderRepair(segment).catch(() => undefined)
    while (isDamaged(segment) && (await isServing(reelgate))) await pause(20)
  }
}

const orderRepair = ({ key }: LostSegment) =>
  sendCommand(dataPaths(reelgate.dataDir).controlSocket, 'media checked', {
    damaged: [{ ...key, problem: 'its file is missing' }],
    damagedFiles: [],
    intactFiles: [],
  })

const isDamaged = ({ key }: LostSegment) =>
  readRows(reelgate, 'select 1 from segment where video_id = ? and damaged = 1', key.videoId).length > 0

/** An order that a kill has undone is given again; then the segment is there, byte for byte. */
async function findRepaired(): Promise<void> {
  for (const segment of lost.splice(0)) {
    const isQueued =
      readRows(reelgate, `select 1 from chunk where video_id = ? and state <> 'done'`, segment.key.videoId).length > 0
    if (isDamaged(segment) && !isQueued) await orderRepair(segment)
    await expect.poll(() => isDamaged(segment)).toBe(false)
    expect(await readFile(segment.path)).toEqual(segment.bytes)
  }
}

/** An endpoint of its own, and a deletion that it hears of. */
async function delivery({ reelgate: server, clients }: CrashTest): Promise<() => Promise<unknown>> {
  const receiver = receivers.newReceiver()
  const { uuid } = await webhooksOf(server.owner).create(receiver.url)
  const { videoId = '' } = await clients.create(0)
  listening.push({ uuid, receiver })
  return async () => {
    await clients.remove(0, [videoId])
    while (openDeliveries(server, uuid) > 0 && (await isServing(server))) await pause(20)
  }
}
const listening: { uuid: string; receiver: Receiver }[] = []

const openDeliveries = (server: Reelgate, uuid: string) =>
  readRows(server, 'select 1 from delivery where webhook_id = ? and finished_at_s is null', uuid).length

/** Whatever is in an endpoint's list has arrived there; then the endpoint is not needed any more. */
async function hearAll(): Promise<void> {
  for (const { uuid, receiver } of listening.splice(0)) {
    const listed = readRows<{ body: string }>(reelgate, 'select body from delivery where webhook_id = ?', uuid)
    const received = () => receiver.received.map(({ body }) => body)
    await expect.poll(() => listed.filter(({ body }) => !received().includes(body))).toEqual([])
    await expect.poll(() => openDeliveries(reelgate, uuid)).toBe(0)
    await webhooksOf(reelgate.owner).remove(uuid)
  }
}

function aReadyVideo(world: CrashTest['world']): string {
  const [found] = [...world.videos].find(([, { isVideo, rank }]) => isVideo && rank === 3) ?? []
  if (!found) throw new Error('no video plays')
  return found
}
