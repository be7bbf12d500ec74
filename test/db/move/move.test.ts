import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished } from 'vitest'
import { KEYS } from '../../../src/db/move/tables.ts'
import { addFile, listFiles, makeImage, SRT } from '../../assets/sample-files.ts'
import type { Owner, UploadCredentials } from '../../client.ts'
import { makeLink, signIn } from '../../console/person.ts'
import { untilFinished } from '../../data-folder.ts'
import { startReelgate as startInProcess } from '../../in-process.ts'
import { createTusClient } from '../../ingest/tus-client.ts'
import { type Location, makeLocation } from '../../installation-folder.ts'
import { audioOf, makeDub } from '../../pipeline/dubs.ts'
import type { DatabaseKind } from '../../postgres.ts'
import { type Reelgate, startReelgate } from '../../reelgate.ts'
import { changeRows, listTables, readRows } from '../../rows.ts'
import { sampledTests } from '../../sample.ts'
import { makeVideo } from '../../videos.ts'
import { startReceivers, webhooksOf } from '../../webhooks/receiver.ts'
import { openDatabaseAt } from '../database.ts'
import { hashDatabaseFiles, migrateSuccessfully, newTarget, readTable } from './installation.ts'

const { test, draw } = sampledTests('moves to PostgreSQL', 1)

test('an installation continues from PostgreSQL with all it has: videos play, sessions run, OTPs open once, every response is the same', async () => {
  const { reelgate, env, video, viewer, otp, webhook, kept, askOnce, importing, moveIn } = await startFull()
  const { owner } = reelgate
  const before = await answersOf(owner, video, webhook)
  await reelgate.kill() // its last commits lie in its log yet
  const [files, url] = [hashDatabaseFiles(reelgate), await newTarget()]

  const { tables } = await migrateSuccessfully(reelgate.env, url)
  expect(hashDatabaseFiles(reelgate)).toEqual(files)
  const there = { ...reelgate, databaseUrl: url }
  for (const { table, rows } of tables.filter((each) => each.table !== 'setting')) {
    expect(readTable(there, table), table).toEqual(readTable(reelgate, table))
    expect([table, readTable(there, table).length]).toEqual([table, rows])
  }
  expect(tables.filter(({ rows }) => rows === 0)).toEqual([])

  const now = await startReelgate({
    database: 'postgres',
    copyOf: there,
    env: { ...env, PORT: new URL(reelgate.url).port },
  })
  expect(await answersOf(owner, video, webhook)).toEqual(before)
  expect(JSON.parse((await now.cli('ban', 'list', '--json')).stdout)).toMatchObject([{ subject: BANNED }])
  await viewer.key(0) // to receive a new nonce
  expect((await viewer.key(0)).status).toBe(200)
  const late = now.newViewer()
  expect((await late.redeem(otp)).playing).toBe(true)
  expect((await late.download('1')).segments.length).toBeGreaterThan(0)
  expect((await now.newViewer().redeem(otp)).playing).toBe(false)

  // Counters and numbers continue.
  expect(await askOnce()).toEqual(kept)
  const { videoId } = await owner.credentials('Of this side')
  expect((await owner.list()).rows[0]?.id).toBe(videoId)
  expect(await owner.delete([video])).toMatchObject({ message: 'Successfully deleted 1 videos' })
  const { rows } = await webhooksOf(owner).deliveries(webhook)
  const numbers = Array.from({ length: before.deliveries.count + 3 }, (_, i) => i + 1)
  expect(rows.map(({ id }) => id)).toEqual(numbers.reverse())
  expect(rows.slice(0, 3).map(({ event }) => event)).toEqual(['video:deleted', 'session:suspicious', 'otp:reused'])
  expect((await bodyOf<{ rows: string[] }>(owner, 'GET', '/api/videos/tags')).rows).toEqual(['course'])
  await expect.poll(() => readRows(now, 'select 1 from video where id = ?', video)).toEqual([])
  const wrong = readRows(
    now,
    `select name from tag where video_count <> (select count(*) from video_tag where video_tag.account_id = tag.account_id and video_tag.name = tag.name)
      union all select id from folder where video_count <> (select count(*) from video
        where video.account_id = folder.account_id and folder_id = folder.id and deleted_at_s is null)
      union all select id from account where video_count <> (select count(*) from video where account_id = account.id and deleted_at_s is null)`,
  )
  expect(wrong).toEqual([])
  await owner.delete([importing]) // a command that copies waits for the imports of its account
  expect(JSON.parse((await now.cli(...moveIn)).stdout)).toEqual({ videos: 1, added: 0, problems: [] })
})

test('every table moves, by a key that both databases have', async () => {
  const [left, right] = [await newLocation('sqlite'), await newLocation('postgres')]
  const ours = listTables(left).filter((name) => !name.startsWith('kysely_') && !name.startsWith('video_text'))
  expect(Object.keys(KEYS).sort()).toEqual([...ours, 'video_text'].sort())
  const keys = readRows<{ table: string; columns: string }>(
    right,
    `select relname as table, string_agg(attname, ',' order by place) as columns from pg_index
      join pg_class on pg_class.oid = indrelid, unnest(indkey::int2[]) with ordinality as part (number, place)
      join pg_attribute on attnum = number where attrelid = indrelid and indisprimary
        and relnamespace = current_schema()::regnamespace and relname not like 'kysely%'
        and relpersistence = 'p' -- what several servers share without a log does not move
      group by relname`,
  )
  expect(Object.fromEntries(keys.map(({ table, columns }) => [table, columns]))).toEqual(
    Object.fromEntries(Object.entries(KEYS).map(([table, columns]) => [table, columns.join()])),
  )
})

test('the number of a deleted video is not reused after the move', async () => {
  const reelgate = await startReelgate({ database: 'sqlite' })
  const { videoId } = await reelgate.owner.credentials('The last')
  const [{ position } = { position: 0 }] = readRows<{ position: number }>(
    reelgate,
    'select position from video where id = ?',
    videoId,
  )
  await reelgate.owner.delete([videoId])
  await expect.poll(() => readRows(reelgate, 'select 1 from video')).toEqual([])
  await reelgate.stop()
  const url = await newTarget()
  await migrateSuccessfully(reelgate.env, url)
  const there = await startReelgate({ database: 'postgres', copyOf: { ...reelgate, databaseUrl: url } })
  await there.owner.credentials('The next')
  expect(readRows<{ position: number }>(there, 'select position from video')[0]?.position).toBeGreaterThan(position)
})

test('videos whose encoding was interrupted or had not begun are encoded after the move, and play', async () => {
  const reelgate = await startReelgate({ database: 'sqlite', env: { REELGATE_ENCODERS: '1' } })
  const video = await makeVideo({ seconds: 60, size: '320x240' })
  const videos = [await reelgate.owner.upload('Under way', video), await reelgate.owner.upload('Behind it', video)]
  const states = () => readRows(reelgate, 'select distinct state from chunk order by state').map(({ state }) => state)
  await expect.poll(states).toEqual(['done', 'pending', 'running'])
  await reelgate.kill()
  expect(states()).toContain('pending')
  const url = await newTarget()
  await migrateSuccessfully(reelgate.env, url)
  const there = await startReelgate({ database: 'postgres', copyOf: { ...reelgate, databaseUrl: url } })
  for (const id of videos) {
    await untilFinished(there, id)
    const viewer = there.newViewer()
    expect((await viewer.redeem(await there.owner.issueOtp(id))).playing).toBe(true)
    expect((await viewer.download('1')).segments).toHaveLength(15)
  }
})

/** A learning platform with a course, a link, a launch and a grade. */
async function haveLearningPlatform(
  { owner, ...stored }: Awaited<ReturnType<typeof startReelgate>>,
  video: string,
): Promise<void> {
  await bodyOf(owner, 'POST', '/api/lti/links')
  await bodyOf(owner, 'POST', '/api/lti/platforms', { name: 'Schüle', issuer: `http://${SILENT}` })
  changeRows(
    stored,
    `insert into lti_course (platform_id, course_id, account_id, title, last_launch_at_s) select id, '42', account_id, 'Licht', 5 from lti_platform`,
  )
  changeRows(stored, 'insert into lti_nonce (hash, expires_at_s) values (?, 9999999999)', Buffer.from('a launch'))
  changeRows(
    stored,
    `insert into lti_grade (id, platform_id, account_id, user_id, video_id, line_item, wrapped_subject, completed_at_tenths, tenths, launched_at_s)
      select 'a grade', id, account_id, 'ann', ?, 'https://lms.example/1', ?, 9, 3, 9999999999 from lti_platform`,
    ...[video, Buffer.from('a subject')],
  )
}

const BANNED = '203.0.113.7'
/** A port without a listener: an import waits. */
const SILENT = '127.0.0.1:1'

/** An installation in SQLite with rows in every table. */
async function startFull() {
  const receivers = await startReceivers()
  onTestFinished(() => receivers.close())
  const receiver = receivers.newReceiver()
  const former = await startInProcess({ database: 'sqlite' })
  const env = {
    REELGATE_LIMITS: '{"redeem":{"ip":20}}',
    REELGATE_TRUSTED_PROXIES: '127.0.0.1',
    REELGATE_OUTBOUND_ALLOW: `${receivers.host},${SILENT},${new URL(former.url).host}`,
  }
  const reelgate = await startReelgate({ database: 'sqlite', env })
  const { owner } = reelgate
  const webhook = (await webhooksOf(owner).create(receiver.url)).uuid
  const video = await owner.readyVideo(await makeVideo({ seconds: 10, rate: 10 }), 'ΣΊΣΥΦΟΣ, light and "shadow" 🌒')
  const askOnce = async () => {
    const response = await owner.call('PUT', '/api/videos?title=Later', { headers: { 'Idempotency-Key': 'one-video' } })
    return (await response.json()) as UploadCredentials
  }
  const kept = await askOnce()
  const second = kept.videoId
  await untilFinished(reelgate, video)
  await addFile(owner, video, SRT, 'en')
  await addFile(owner, second, await makeImage('320x180'))
  await bodyOf(owner, 'PUT', `/api/videos/${video}/chapters`, { language: 'en', chapters: [{ startS: 2.5, title: 'Ἥλιος' }] })
  const [track] = (await bodyOf<{ tracks: { id: number }[] }>(owner, 'GET', `/api/videos/${video}/audio`)).tracks
  await bodyOf(owner, 'PUT', `/api/videos/${video}/audio/${track?.id}`, { name: 'Öster reich', language: 'de-AT' })
  const audio = audioOf({ owner, videoId: video })
  await audio.until(await audio.add(await makeDub({ fromS: 0, toS: 1, seconds: 2 })), 'ready')
  await bodyOf(owner, 'POST', `/api/videos/${video}`, { externalId: 'lms/1', metadata: { course: 'drawing ü' } })
  const folder = await bodyOf<{ id: string }>(owner, 'POST', '/api/videos/folders', { name: 'Ärzte', parent: 'root' })
  await bodyOf(owner, 'POST', '/api/videos/folders', { name: 'below', parent: folder.id })
  const moveIn = await haveMovedIn(reelgate, former)
  const waiting = { url: `http://${SILENT}/video.mp4` }
  const { id: importing } = await bodyOf<{ id: string }>(owner, 'PUT', '/api/videos/importUrl', waiting)
  await owner.credentials('In no folder, and deleted').then(({ videoId }) => owner.delete([videoId]))
  await createTusClient(owner).create(1000)
  await bodyOf(owner, 'POST', '/api/upload-tokens', { origin: 'https://school.example', reference: 'ann' })
  await reelgate.cli('worker', 'add', 'office', '--json')
  await haveLearningPlatform(reelgate, video)
  changeRows(
    reelgate,
    "insert into server (id, run, name, version, state, started_at_s, beat_at_s) values ('a', 'b', 'office-1', '0.3.0', 'serving', 1, 2.5)",
  )
  const trashed = await owner.readyVideo(await makeVideo({ seconds: 1 }), 'In the trash')
  await bodyOf(owner, 'DELETE', `/api/videos?trash=1&videos=${trashed}`)
  await signIn(reelgate)
  await makeLink(reelgate)
  changeRows(
    reelgate,
    `insert into passkey select 'a passkey', id, 'a phone', ?, 0, '[]', 1, null from console_user limit 1`,
    Buffer.from('a public key'),
  )
  changeRows(
    reelgate,
    "insert into claim (kind, subject, ends_at_s, failures) values ('mp4', 'waits after a failure', 9999999999, 1)",
  )
  changeRows(reelgate, "insert into moved_blob (name) values ('sources/a')")
  const replacing = await bodyOf<UploadCredentials>(owner, 'PUT', `/api/videos/${video}`)
  await owner.send(replacing, new Blob(['no video']))
  await expect.poll(async () => (await owner.video(video)).replacement).toMatchObject({ state: 'failed' })
  await bodyOf(owner, 'POST', `/api/videos/${second}`, { folderId: folder.id })
  await bodyOf(owner, 'POST', '/api/videos/tags', { videos: [video, second], tags: ['course', 'Γ'] })
  await bodyOf(owner, 'DELETE', '/api/videos/tags', { videos: [second], tags: ['Γ'] })

  const otp = await owner.issueOtp(video, { userId: 'ben' })
  const viewer = reelgate.newViewer()
  const annotate = [{ type: 'image', url: `http://${receivers.host}/nothing.png` }]
  const marked = await owner.issueOtp(video, { userId: 'ann', streamLimit: 1, annotate, viewer: { name: 'Ann' } })
  expect((await viewer.redeem(marked)).playing).toBe(true)
  expect((await viewer.key(0)).status).toBe(200)
  for (const [state, positionS] of [
    ['playing', 0],
    ['playing', 1.5],
    ['paused', 16],
  ]) {
    const quality = { measuredMs: 9, startMs: 7, waits: 0, waitedMs: 0, played: [], frames: 0, droppedFrames: 0 }
    const beat = JSON.stringify({ state, positionS, rate: 1, bufferS: 0, quality })
    expect((await viewer.call('beat', undefined, beat)).status).toBe(200)
  }
  await expect.poll(() => readRows(reelgate, 'select 1 from viewing')).toHaveLength(1)
  await expect.poll(() => readRows(reelgate, 'select 1 from view_quality')).toHaveLength(1)
  await expect.poll(() => readRows(reelgate, 'select 1 from view_total')).toHaveLength(1)
  await expect.poll(() => readRows(reelgate, 'select 1 from video_usage')).toHaveLength(1)
  await beBanned(reelgate)
  await reelgate.newViewer().redeem(await owner.issueOtp(video, { ipGeo: { allow: ['192.0.2.1'] } })) // refused: an alert
  await receiver.until(2)
  await expect
    .poll(async () => (await webhooksOf(owner).deliveries(webhook)).rows.every(({ state }) => state === 'delivered'))
    .toBe(true)
  return { reelgate, env, video, viewer, otp, webhook, kept, askOnce, importing, moveIn }
}

/** A video of another server, which is copied once. @returns the arguments of the command that copied it */
async function haveMovedIn(reelgate: Reelgate, former: Pick<Reelgate, 'url' | 'owner'>): Promise<string[]> {
  const upload = await former.owner.credentials('Of another server')
  await former.owner.send(upload, new Blob(['no video']))
  const moveIn = ['import', '--from', former.url, '--key', former.owner.apiKey, '--pace', '100000', '--json']
  expect(JSON.parse((await reelgate.cli(...moveIn)).stdout)).toEqual({ videos: 1, added: 1, problems: [] })
  return moveIn
}

/** An installation with a database of this version and no rows. */
async function newLocation(database: DatabaseKind): Promise<Location> {
  const location = await makeLocation({ database })
  onTestFinished(() => location.remove())
  await (await openDatabaseAt(location)).close()
  return location
}

/** An address that asks twice as often as it may. */
async function beBanned(reelgate: Reelgate) {
  const headers = { 'X-Forwarded-For': BANNED, 'Content-Type': 'application/json' }
  while (readRows(reelgate, 'select 1 from ban').length === 0) {
    await fetch(`${reelgate.url}/play/redeem`, { method: 'POST', headers, body: '{}' })
    await pause(1)
  }
}

async function bodyOf<T = unknown>(owner: Owner, method: string, path: string, body?: unknown): Promise<T> {
  const response = await owner.call(method, path, { body })
  expect([path, response.status]).toEqual([path, 200])
  return (await response.json()) as T
}

async function answersOf(owner: Owner, video: string, webhook: string) {
  return {
    list: await owner.list(),
    found: await Promise.all(
      ['σίσυφος', 'LIGHT', video.slice(3, 11), '🌒', 'li'].map((q) => owner.list(`?${new URLSearchParams({ q })}`)),
    ),
    tagged: await owner.list('?tags=course'),
    ofCourse: await owner.list('?metadata[course]=drawing%20%C3%BC'),
    tags: await bodyOf(owner, 'GET', '/api/videos/tags'),
    folders: await bodyOf(owner, 'GET', '/api/videos/folders/root'),
    video: await owner.video(video),
    files: await listFiles(owner, video),
    chapters: await bodyOf(owner, 'GET', `/api/videos/${video}/chapters`),
    audio: await bodyOf(owner, 'GET', `/api/videos/${video}/audio`),
    webhooks: await webhooksOf(owner).list(),
    deliveries: await webhooksOf(owner).deliveries(webhook),
    usage: await (
      await owner.call('POST', '/api/account/video-usage', { body: { date: new Date().toISOString().slice(0, 10) } })
    ).text(),
  }
}

draw()
