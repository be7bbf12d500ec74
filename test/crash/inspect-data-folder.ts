import { cp, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import SqliteDatabase from 'better-sqlite3'
import { createSegmentIvDeriver, deriveWindowKey, unwrapContentKey } from '../../src/crypto/content-key.ts'
import { windowOfAudioSegment, windowOfVideoSegment } from '../../src/crypto/key-window.ts'
import { type MasterKey, unwrap } from '../../src/crypto/master-key.ts'
import { openBlob } from '../../src/crypto/sealed-blob.ts'
import { audioSegmentCount, findAudioTrack, type Plan, plannedSegmentCount, videoSegmentCount } from '../../src/encode/plan.ts'
import { getMasterKey, type Installed, openSeal, sourceHash } from '../data-folder.ts'
import { readSegment, readTimescale } from '../pipeline/videos.ts'
import { readRows } from '../rows.ts'
import { decrypt } from '../viewer.ts'

// What must hold of a data folder at the very moment at which its server was killed: threats-and-faults.md, section 3.
// Only the folder is looked at, on a copy of its database, so that nothing is mended before the next start mends it.

/** What an earlier look saw: states only go forward, texts under a name never change. */
export type Memory = {
  ranks: Map<string, number>
  attempts: Map<string, number>
  texts: Map<string, string>
  read: Set<string>
  changes: Map<string, number>
}

export const newMemory = (): Memory => ({
  ranks: new Map(),
  attempts: new Map(),
  texts: new Map(),
  read: new Set(),
  changes: new Map(),
})

/** A video's states in the only order in which they may come; the two failures are one place. */
export const rankOf = (status: string): number =>
  ['PRE-Upload', 'Queued', 'Processing', 'ready'].includes(status)
    ? ['PRE-Upload', 'Queued', 'Processing', 'ready'].indexOf(status)
    : 4

type VideoRow = {
  id: string
  account_id: string
  status: string
  status_reason: string | null
  generation: number
  deleted_at_s: number | null
}
type SourceRow = {
  video_id: string
  number: number
  file: string
  size_bytes: number
  sha256: Buffer
  wrapped_key: Buffer | null
  iv: Buffer
}
type GenerationRow = {
  video_id: string
  number: number
  wrapped_content_key: Buffer | null
  plan: string
  finished_at_s: number | null
  source_number: number
  kept_until_s: number | null
}
type RenditionRow = { video_id: string; generation: number; id: number; kind: string; init: Buffer | null }
type ChunkRow = {
  video_id: string
  generation: number
  kind: string
  first_segment: number
  segment_count: number
  state: string
  attempt: number
}
type SegmentRow = {
  video_id: string
  generation: number
  rendition_id: number
  number: number
  file: string
  size_bytes: number
  damaged: number
}
type FileRow = {
  video_id: string
  type: string
  generation: number | null
  rendition_id: number | null
  blob: string | null
  size_bytes: number
  wrapped_key: Buffer | null
  iv: Buffer | null
}

type Rows = { all<Row>(sql: string): Row[] }

/** A stopped server's folder, opened. */
type Inspection = { installed: Installed; masterKey: MasterKey; rows: Rows; memory: Memory }

/**
 * Looks for broken promises in the folder of a stopped server.
 * @param isRestored whether it was restored from a backup, which has no bytes of unfinished uploads, and has not been started
 * @returns one sentence for each, none when all is well; and the files that no row names
 */
export async function examine(
  installed: Installed,
  memory: Memory,
  { isRestored = false } = {},
): Promise<{ breaches: string[]; orphans: string[] }> {
  return withCopy(installed, async (rows) => {
    const breaches = [
      ...(installed.databaseUrl ? [] : healthBreaches(rows)), // PostgreSQL has no look of that kind, and refuses rows that contradict each other
      ...changeBreaches(rows, memory),
      ...counterBreaches(rows),
      ...playbackBreaches(rows),
      ...halfRows(rows),
      ...eventBreaches(rows),
      ...(await uploadBreaches(installed, rows, isRestored)),
    ]
    const inspection = { installed, masterKey: getMasterKey(installed), rows, memory }
    for (const video of rows.all<VideoRow>('select * from video')) {
      const found = await videoBreaches(inspection, video)
      breaches.push(...found.map((breach) => `video ${video.id} (${video.status}): ${breach}`))
    }
    return { breaches, orphans: await findOrphans(installed, rows) }
  })
}

async function withCopy<T>(installed: Installed, look: (rows: Rows) => Promise<T>): Promise<T> {
  // PostgreSQL repairs itself when it is opened: what it shows is what the next start will find.
  if (installed.databaseUrl) return look({ all: <Row>(sql: string) => readRows(installed, sql) as Row[] })
  const { dataDir } = installed
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-image-'))
  try {
    for (const name of ['reelgate.db', 'reelgate.db-wal']) await cp(join(dataDir, name), join(folder, name)).catch(unlessMissing)
    const database = new SqliteDatabase(join(folder, 'reelgate.db'))
    try {
      return await look({
        all: <Row>(sql: string) => database.prepare<[], Row>(sql).all(),
      })
    } finally {
      database.close()
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function unlessMissing(error: unknown): void {
  if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
}

function healthBreaches(rows: Rows): string[] {
  const integrity = rows.all<{ integrity_check: string }>('pragma integrity_check').map((row) => row.integrity_check)
  const foreign = rows.all('pragma foreign_key_check')
  return [...(integrity.join() === 'ok' ? [] : integrity), ...foreign.map((row) => `foreign key: ${JSON.stringify(row)}`)]
}

/** A change number that went back would let a client keep an old list. */
function changeBreaches(rows: Rows, memory: Memory): string[] {
  return rows.all<{ id: string; change_number: number }>('select id, change_number from account').flatMap((account) => {
    const before = memory.changes.get(account.id) ?? 0
    memory.changes.set(account.id, account.change_number)
    return account.change_number < before ? [`the change number of ${account.id} went back`] : []
  })
}

/** Stored counters against counts made afresh. */
function counterBreaches(rows: Rows): string[] {
  const counters = [
    `select 'account ' || account.id as what, video_count as kept, count(video.id) as counted
     from account left join video on account_id = account.id and deleted_at_s is null group by account.id`,
    TAG_COUNTERS,
    `select 'videos in folder ' || folder.id as what, folder.video_count as kept, count(video.id) as counted
     from folder left join video on video.account_id = folder.account_id and folder_id = folder.id and deleted_at_s is null
     group by folder.account_id, folder.id`,
    `select 'folders in folder ' || folder.id as what, folder.folder_count as kept, count(inner_folder.id) as counted
     from folder left join folder as inner_folder on inner_folder.account_id = folder.account_id and inner_folder.parent_id = folder.id
     group by folder.account_id, folder.id`,
    `select 'folders of account ' || account.id as what, account.folder_count as kept, count(folder.parent_id) as counted
     from account left join folder on account_id = account.id group by account.id`,
    `select 'folder of ' || video.id as what, 1 as kept, count(folder.id) as counted
     from video left join folder on folder.account_id = video.account_id and folder.id = folder_id where deleted_at_s is null
     group by video.id`,
    `select 'search index of ' || video.id as what, count(video_text.rowid) as kept, 1 as counted
     from video left join video_text on video_text.rowid = position and video_text.id = video.id where deleted_at_s is null
     group by video.id`,
    `select 'search index of what is gone' as what, count(*) as kept, 0 as counted
     from video_text left join video on position = video_text.rowid where video.id is null`,
  ]
  return counters
    .flatMap((sql) => rows.all<{ what: string; kept: number; counted: number }>(sql))
    .filter(({ kept, counted }) => kept !== counted)
    .map(({ what, kept, counted }) => `${what}: the counter says ${kept}, there are ${counted}`)
}

const TAG_COUNTERS = `
  select 'tag ' || account_id || ' ' || name as what, sum(kept) as kept, sum(counted) as counted from (
    select account_id, name, video_count as kept, 0 as counted from tag
    union all
    select video_tag.account_id, video_tag.name, 0, 1
    from video_tag join video on video.position = video_tag.position where video.deleted_at_s is null
  ) as counters group by account_id, name`

function playbackBreaches(rows: Rows): string[] {
  const spent = rows.all<{ video_id: string }>(
    'select otp.video_id from otp left join playback_session on otp_hash = hash where (spent_at_s is null) <> (playback_session.id is null)',
  )
  const twice = rows.all<{ otp_hash: Buffer }>('select otp_hash from playback_session group by otp_hash having count(*) > 1')
  const alive = rows.all<{ id: string }>(
    `select playback_session.id from playback_session left join video on video.id = video_id
     where ended_at_s is null and (video.id is null or deleted_at_s is not null)`,
  )
  const slots = rows.all<{ user_id: string }>(
    `select stream_slot.user_id from stream_slot left join playback_session on id = session_id
     where id is null or n > stream_limit or stream_slot.user_id <> playback_session.user_id`,
  )
  return [
    ...slots.map(({ user_id }) => `${user_id} holds a stream’s slot that no session may have`),
    ...spent.map(({ video_id }) => `an OTP of ${video_id} is spent without a session, or the reverse`),
    ...twice.map(({ otp_hash }) => `the OTP ${otp_hash.toString('hex')} opened two sessions`),
    ...alive.map(({ id }) => `the session ${id} outlives its video`),
  ]
}

/** Rows that speak of a video that is not there: a deletion, or a creation, of which a part survived. */
function halfRows(rows: Rows): string[] {
  const tables = [
    ...['upload_policy', 'resumable_upload', 'source', 'replacement', 'generation', 'rendition', 'chunk', 'segment'],
    ...['file', 'chapters', 'audio_settings', 'dub', 'view_total'],
  ]
  const found = tables.flatMap((table) =>
    rows
      .all<{ video_id: string }>(`select distinct video_id from ${table} where video_id not in (select id from video)`)
      .map(({ video_id }) => `${table} has a row of ${video_id}, which is no video`),
  )
  const tagged = rows.all<{ name: string }>('select name from video_tag where position not in (select position from video)')
  return [...found, ...tagged.map(({ name }) => `a video that is not there has the tag ${name}`)]
}

type UploadRow = {
  video_id: string
  file: string
  received_bytes: number
  finished_at_s: number | null
  wrapped_key: Buffer | null
  replaces: number
  status: string
  deleted_at_s: number | null
}

/** What was acknowledged of a file that arrives in parts is on the disk, and can be opened; with its last byte it is its video's. */
async function uploadBreaches({ dataDir }: Installed, rows: Rows, isRestored: boolean): Promise<string[]> {
  const uploads = rows.all<UploadRow>(
    `select resumable_upload.video_id, resumable_upload.file, received_bytes, finished_at_s, wrapped_key, replaces, status,
       deleted_at_s from resumable_upload join video on video.id = video_id`,
  )
  const breaches: string[] = []
  for (const { video_id, file, received_bytes, finished_at_s, wrapped_key, replaces, status, deleted_at_s } of uploads) {
    const isFinished = finished_at_s !== null
    if (isFinished !== (wrapped_key === null)) breaches.push(`the upload of ${video_id} has a key, or has none`)
    if (replaces === 0 && isFinished !== (status !== 'PRE-Upload')) breaches.push(`an upload of ${video_id}, which is ${status}`)
    if (isFinished || deleted_at_s !== null || isRestored) continue
    const { size = 0 } = (await stat(join(dataDir, 'sources', file)).catch(unlessMissing)) ?? {}
    const sealedBytes = received_bytes - (received_bytes % CIPHER_BLOCK_BYTES)
    if (size < sealedBytes) breaches.push(`of the upload of ${video_id} ${size} bytes are stored instead of ${sealedBytes}`)
  }
  return breaches
}

/** What does not fill a block is in the row. */
const CIPHER_BLOCK_BYTES = 16

/**
 * I7: what has become of the videos of an account is sent to its webhooks, once, and nothing else is. Judged by a webhook that is off and has
 * been there from the start: what it misses is listed, and no network is asked.
 */
function eventBreaches(rows: Rows): string[] {
  const due = rows.all<{ event: string }>(
    `select 'video:ready ' || id as event from video where status = 'ready'
     union all select 'video:failed ' || id from video where status in ('Encoding error', 'Not a media file')
     union all select 'video:readyall ' || video_id from generation where finished_at_s is not null
     union all select 'video:deleted ' || id from video where deleted_at_s is not null`,
  )
  if (rows.all(`select 1 from webhook where disabled_reason is not null and event is null`).length === 0) return []
  const deliveries = rows.all<{ event: string; body: string }>(
    `select delivery.event, body from webhook join delivery on webhook_id = webhook.id
     where disabled_reason is not null and webhook.event is null and delivery.event not in ('otp:reused', 'session:suspicious', 'alert')`,
  )
  const delivered = Map.groupBy(deliveries, ({ event, body }) => `${event} ${JSON.parse(body).payload.id}`)
  const videos = rows.all<{ id: string; status: string }>('select id, status from video where deleted_at_s is null')
  const states = new Map(videos.map(({ id, status }) => [id, status]))
  const untrue = [...delivered.keys()].flatMap((what) => {
    const [event, videoId = ''] = what.split(' ')
    const status = states.get(videoId)
    // The chapters of a file come with its plan, everything else with an end of its encoding.
    const least = rankOf(event === 'video:chapters' ? 'Processing' : 'ready')
    const isTrue = status === undefined || (event !== 'video:deleted' && rankOf(status) >= least)
    return isTrue ? [] : [`${what} was delivered for a video that is ${status}`]
  })
  const gaps = rows.all<{ id: string }>(
    `select webhook.id from webhook left join delivery on webhook_id = webhook.id
     group by webhook.id having count(sequence) <> last_sequence or max(sequence) <> last_sequence`,
  )
  return [
    ...due.filter(({ event }) => !delivered.has(event)).map(({ event }) => `${event} was not delivered`),
    ...[...delivered]
      .filter(([event, times]) => times.length > 1 && !event.startsWith('video:replaced '))
      .map(([event]) => `${event} was delivered twice`),
    ...untrue,
    ...gaps.map(({ id }) => `the deliveries of the webhook ${id} are not numbered without a gap`),
  ]
}

async function videoBreaches(inspection: Inspection, video: VideoRow): Promise<string[]> {
  const { installed, masterKey, rows, memory } = inspection
  const of = ` where video_id = '${video.id}'`
  const sources = rows.all<SourceRow>(`select * from source${of}`)
  const [source] = sources
  const generations = rows.all<GenerationRow>(`select * from generation${of}`)
  if (video.deleted_at_s !== null) {
    const files = rows.all<FileRow>(`select * from file${of}`)
    const uploads = rows.all<{ wrapped_key: Buffer | null }>(`select wrapped_key from resumable_upload${of}`)
    const keys = [
      ...sources.map((each) => each.wrapped_key),
      ...uploads.map((upload) => upload.wrapped_key),
      ...generations.map((generation) => generation.wrapped_content_key),
      ...files.map((file) => file.wrapped_key),
    ]
    return keys.some((key) => key !== null) ? ['deleted, but a key of it is kept'] : []
  }
  const breaches = backwardBreaches(video, memory)
  const isWaiting = video.status === 'PRE-Upload'
  const policies = rows.all<{ spent_at_s: number | null }>(`select spent_at_s from upload_policy${of}`)
  if (isWaiting !== !source) breaches.push(isWaiting ? 'has a source already' : 'has no source')
  if (policies.length > 0 && isWaiting !== policies.every(({ spent_at_s }) => spent_at_s === null))
    breaches.push('its policy is spent, or is not')
  if (rankOf(video.status) === 4 && !video.status_reason) breaches.push('failed without a reason')
  for (const each of sources) breaches.push(...(await sourceBreaches(installed, masterKey, each, memory)))
  const generation = generations.find(({ number }) => number === video.generation)
  if (video.generation > 0 && !generation) breaches.push(`plays generation ${video.generation}, which is not there`)
  if (video.status === 'ready' && !generation) breaches.push('has no generation')
  for (const each of generations) {
    const isPlayed = each.number === video.generation
    const found = await generationBreaches(inspection, isPlayed ? video : { ...video, status: 'Processing' }, each)
    breaches.push(...found.map((breach) => `${isPlayed ? '' : `generation ${each.number} `}${breach}`))
    if (!sources.some(({ number }) => number === each.source_number)) breaches.push(`generation ${each.number} has no file`)
    if (each.kept_until_s !== null && (isPlayed || each.finished_at_s === null))
      breaches.push(`keeps generation ${each.number}, which plays or is not finished`)
  }
  breaches.push(...nextBreaches(rows, video, generations))
  breaches.push(...numberBreaches(rows, video.id), ...lessonBreaches(rows, video, generations))
  for (const file of rows.all<FileRow>(`select * from file${of} and blob is not null`))
    breaches.push(...(await fileBreaches(inspection, file, generations)))
  return breaches
}

/** What is neither played nor kept is made, or was encrypted again, and one at a time; a file that nothing is made from replaces another. */
function nextBreaches(rows: Rows, { id, generation, status }: VideoRow, generations: readonly GenerationRow[]): string[] {
  const next = generations.filter(({ number, kept_until_s }) => number !== generation && kept_until_s === null)
  const idle = rows.all<{ number: number }>(
    `select number from source where video_id = '${id}'
       and number not in (select source_number from generation where video_id = '${id}')
       and number not in (select source_number from replacement where video_id = '${id}' and source_number is not null)
       and number not in (select source_number from dub where video_id = '${id}')`,
  )
  const [size] = rows.all<{ kept: number; counted: number }>(
    `select total_size_bytes as kept, (select coalesce(sum(size_bytes), 0) from source where video_id = '${id}')
       + (select coalesce(sum(size_bytes), 0) from file where video_id = '${id}')
       + (select coalesce(sum(size_bytes), 0) from segment where video_id = '${id}') as counted from video where id = '${id}'`,
  )
  const isCounted = status !== 'ready' || next.length > 0 || generations.some(({ finished_at_s }) => finished_at_s === null)
  return [
    ...(next.length > 1 ? [`${next.length} generations are to play next`] : []),
    ...(status === 'ready' ? idle.map(({ number }) => `nothing is made from file ${number}`) : []),
    ...(isCounted || size?.kept === size?.counted ? [] : [`its size is ${size?.kept} instead of ${size?.counted}`]),
  ]
}

function backwardBreaches(video: VideoRow, memory: Memory): string[] {
  const [before, now] = [memory.ranks.get(video.id) ?? 0, rankOf(video.status)]
  memory.ranks.set(video.id, now)
  return now < before ? [`went back from state ${before} to ${now}`] : []
}

async function sourceBreaches(
  { dataDir }: Installed,
  masterKey: MasterKey,
  source: SourceRow,
  memory: Memory,
): Promise<string[]> {
  const path = join(dataDir, 'sources', source.file)
  if (source.wrapped_key === null) return ['its source has no key']
  if (await isReadBefore(path, memory)) return []
  const seal = { key: unwrap(masterKey, `reelgate source-key 1 ${source.video_id}`, source.wrapped_key), iv: source.iv }
  return readWhole(path, 'its source', (sealed) => {
    const clear = openSeal(sealed, seal)
    const isSame = clear.length === source.size_bytes && sourceHash(clear).equals(source.sha256)
    return isSame ? [] : ['its source is not what its row says']
  })
}

/** Texts under a name never change: one that was read, and has the same inode, time and size, need not be read again. */
async function isReadBefore(path: string, memory: Memory): Promise<boolean> {
  const state = await stat(path).catch(() => undefined)
  if (!state) return false
  const key = `${path} ${state.ino} ${state.mtimeMs} ${state.size}`
  if (memory.read.has(key)) return true
  memory.read.add(key)
  return false
}

async function readWhole(path: string, what: string, check: (bytes: Buffer) => string[]): Promise<string[]> {
  try {
    return check(await readFile(path))
  } catch (error) {
    return [`${what} cannot be opened: ${error instanceof Error ? error.message : error}`]
  }
}

async function generationBreaches(
  { installed, masterKey, rows, memory }: Inspection,
  video: VideoRow,
  generation: GenerationRow,
): Promise<string[]> {
  if (!generation.wrapped_content_key) return ['has no content key']
  const of = ` where video_id = '${video.id}' and generation = ${generation.number}`
  const plan: Plan = JSON.parse(generation.plan)
  const encoded = {
    plan,
    contentKey: unwrapContentKey(masterKey, video.id, generation.number, generation.wrapped_content_key),
    renditions: rows.all<RenditionRow>(`select * from rendition${of}`),
    segments: rows.all<SegmentRow>(`select * from segment${of}`),
    chunks: rows.all<ChunkRow>(`select * from chunk${of}`),
    hasPoster: rows.all(`select 1 from file where type = 'poster' and enabled = 1 and video_id = '${video.id}'`).length > 0,
    isFinished: generation.finished_at_s !== null,
    hasFailed: rankOf(video.status) === 4,
  }
  const breaches = [...chunkBreaches(encoded, memory), ...renditionBreaches(encoded)]
  if (video.status === 'ready' && !isPlayable(encoded)) breaches.push('is ready, but has no first segment to play')
  if (encoded.isFinished && encoded.segments.length !== plannedSegmentCount(plan))
    breaches.push('is finished without all segments')
  if (encoded.isFinished && plan.videoTrack && !encoded.hasPoster) breaches.push('is finished without a poster')
  // A damaged one is encoded again, and until then may be missing.
  const whole = encoded.segments.filter(({ damaged }) => damaged === 0)
  for (const segment of whole) breaches.push(...(await segmentBreaches(installed, encoded, segment, memory)))
  if (encoded.isFinished && whole.length === encoded.segments.length && breaches.length === 0)
    breaches.push(...(await lengthBreaches(installed, encoded)))
  return breaches
}

type Video = {
  plan: Plan
  contentKey: Buffer
  renditions: RenditionRow[]
  segments: SegmentRow[]
  chunks: ChunkRow[]
  hasPoster: boolean
  isFinished: boolean
  hasFailed: boolean
}

/** Every segment is in one chunk; that of a chunk that is done is stored, every other waits or was being encoded. */
function chunkBreaches({ plan, chunks, segments, renditions, hasFailed }: Video, memory: Memory): string[] {
  const breaches: string[] = []
  const stored = new Set(segments.map(({ rendition_id, number }) => `${rendition_id}/${number}`))
  const counts = {
    video: plan.videoTrack ? videoSegmentCount(plan.videoTrack) : 0,
    audio: plan.audioTrack ? audioSegmentCount(plan.audioTrack) : 0,
  }
  for (const [kind, count] of Object.entries(counts)) {
    const ids = renditions.filter((rendition) => rendition.kind === kind).map(({ id }) => id)
    for (let number = 0; number < count; number++) {
      const holding = chunks.filter(
        (chunk) => chunk.kind === kind && chunk.first_segment <= number && number < chunk.first_segment + chunk.segment_count,
      )
      const [chunk] = holding
      if (holding.length !== 1 || !chunk) breaches.push(`${kind} segment ${number} is in ${holding.length} chunks`)
      else if (chunk.state === 'failed' && !hasFailed) breaches.push(`the chunk of ${kind} segment ${number} has failed`)
      else if (chunk.state === 'done' && !ids.every((id) => stored.has(`${id}/${number}`)))
        breaches.push(`${kind} segment ${number} is missing although its chunk is done`)
    }
  }
  for (const chunk of chunks) {
    const name = `${chunk.video_id}/${chunk.generation}/${chunk.kind}/${chunk.first_segment}`
    if (chunk.attempt < (memory.attempts.get(name) ?? 0)) breaches.push(`the attempts of chunk ${name} went back`)
    memory.attempts.set(name, chunk.attempt)
  }
  return breaches
}

function renditionBreaches({ renditions, segments }: Video): string[] {
  return segments
    .filter(({ rendition_id }) => !renditions.find(({ id }) => id === rendition_id)?.init)
    .map(({ rendition_id, number }) => `segment ${rendition_id}/${number} is out without its init segment`)
}

function isPlayable({ plan, segments }: Video): boolean {
  const first = new Set(segments.filter(({ number }) => number === 0).map(({ rendition_id }) => rendition_id))
  const { videoTrack, audioTrack } = plan
  return (
    (!audioTrack || first.has(audioTrack.renditionId)) && (!videoTrack || videoTrack.renditions.some(({ id }) => first.has(id)))
  )
}

async function segmentBreaches({ dataDir }: Installed, video: Video, segment: SegmentRow, memory: Memory): Promise<string[]> {
  const name = `segment ${segment.rendition_id}/${segment.number}`
  const key = `${segment.video_id}/${segment.generation}/${segment.rendition_id}/${segment.number}`
  const before = memory.texts.get(key) ?? segment.file
  memory.texts.set(key, segment.file)
  if (before !== segment.file) return [`${name} has another text than before`]
  const path = join(dataDir, 'segments', segment.file)
  if (await isReadBefore(path, memory)) return []
  return readWhole(path, name, (bytes) => {
    if (bytes.length !== segment.size_bytes) return [`${name} has ${bytes.length} bytes instead of ${segment.size_bytes}`]
    readSegment(openSegment(video, segment, bytes))
    return []
  })
}

function openSegment({ plan, contentKey }: Video, { rendition_id, number }: SegmentRow, bytes: Buffer): Buffer {
  const grid = plan.videoTrack ?? { rateNum: 25, rateDen: 1, gopFrames: 100 }
  const isAudio = findAudioTrack(plan, rendition_id) !== undefined
  const window = isAudio ? windowOfAudioSegment(number, grid) : windowOfVideoSegment(number)
  return decrypt(bytes, deriveWindowKey(contentKey, window), createSegmentIvDeriver(contentKey)(rendition_id, number))
}

/** Of a finished video every rendition lasts as long as the plan says, to a frame. */
async function lengthBreaches({ dataDir }: Installed, video: Video): Promise<string[]> {
  const breaches: string[] = []
  for (const { id, init } of video.renditions) {
    let ticks = 0
    for (const segment of video.segments.filter(({ rendition_id }) => rendition_id === id)) {
      const clear = openSegment(video, segment, await readFile(join(dataDir, 'segments', segment.file)))
      for (const duration of readSegment(clear).durations) ticks += duration
    }
    const { videoTrack } = video.plan
    const audioTrack = findAudioTrack(video.plan, id)
    const isAudio = audioTrack !== undefined
    const wantedS = isAudio
      ? (audioTrack.frameCount * 1024) / 48_000
      : videoTrack
        ? (videoTrack.frameCount * videoTrack.rateDen) / videoTrack.rateNum
        : 0
    const frameS = isAudio ? 1024 / 48_000 : videoTrack ? videoTrack.rateDen / videoTrack.rateNum : 0
    const lengthS = init ? ticks / readTimescale(init) : 0
    if (Math.abs(lengthS - wantedS) > frameS) breaches.push(`rendition ${id} lasts ${lengthS} s instead of ${wantedS}`)
  }
  return breaches
}

/** The captions and chapters of a file with several audio tracks, which all have in these tests, come with its plan and stay. */
function lessonBreaches(rows: Rows, video: VideoRow, generations: readonly GenerationRow[]): string[] {
  const hasLanguages = (plan: string) => plan.includes('"otherAudioTracks"') && !plan.includes('"dub"')
  const isLesson = generations.some(({ plan, source_number }) => source_number === 1 && hasLanguages(plan))
  if (!isLesson) return []
  const captions = rows.all<{ problem: string | null }>(
    `select problem from file where type = 'caption' and stream_index is not null and video_id = '${video.id}'`,
  )
  const chapters = rows.all(`select 1 from chapters where video_id = '${video.id}'`)
  return [
    ...(captions.length === 2 && chapters.length === 1
      ? []
      : [`has ${captions.length} captions and ${chapters.length} chapters`]),
    ...captions.flatMap(({ problem }) => problem ?? []),
  ]
}

/** Sources and renditions have a file's number each, and nothing else has; of what takes each other's place one shows. */
function numberBreaches(rows: Rows, videoId: string): string[] {
  const [counted] = rows.all<{ originals: number; sources: number; filed: number; renditions: number }>(
    `select (select count(*) from file where type = 'original' and video_id = '${videoId}') as originals,
       (select count(*) from source where video_id = '${videoId}') as sources,
       (select count(*) from file join rendition on rendition.video_id = file.video_id and rendition.id = rendition_id
          and rendition.generation = file.generation where file.video_id = '${videoId}') as filed,
       (select count(*) from rendition where video_id = '${videoId}') as renditions`,
  )
  const twice = rows.all<{ type: string }>(
    `select type from file where video_id = '${videoId}' and enabled = 1 and attachment_id is not null
     group by type, language having count(distinct attachment_id) > 1`,
  )
  const isNumbered = counted && counted.originals === counted.sources && counted.filed === counted.renditions
  return [
    ...(isNumbered ? [] : ['a source or a rendition has no number, or two']),
    ...twice.map(({ type }) => `shows two ${type}s`),
  ]
}

async function fileBreaches(
  { installed: { dataDir }, masterKey, memory }: Inspection,
  file: FileRow,
  generations: readonly GenerationRow[],
): Promise<string[]> {
  const blob = file.blob ?? ''
  const path = join(dataDir, ['poster', 'poster-candidate', 'storyboard'].includes(file.type) ? 'posters' : 'files', blob)
  if (await isReadBefore(path, memory)) return []
  return readWhole(path, `a ${file.type}`, (sealed) => {
    const key = keyOf(masterKey, file, generations)
    const clear = file.iv ? openSeal(sealed, { key, iv: file.iv }) : openBlob(key, blob, sealed)
    return clear.length === file.size_bytes ? [] : [`a ${file.type} is not what its row says`]
  })
}

function keyOf(masterKey: MasterKey, file: FileRow, generations: readonly GenerationRow[]): Buffer {
  if (file.wrapped_key) return unwrap(masterKey, `reelgate file-key 1 ${file.blob}`, file.wrapped_key)
  const generation = generations.find(({ number }) => number === file.generation)
  if (!generation?.wrapped_content_key) throw new Error('nothing opens it')
  return unwrapContentKey(masterKey, file.video_id, generation.number, generation.wrapped_content_key)
}

/** Files that no row names: what a kill between a file and its row leaves to the sweep. */
async function findOrphans({ dataDir }: Installed, rows: Rows): Promise<string[]> {
  const orphans: string[] = []
  for (const [folder, names] of [
    ['sources', 'select file as name from source union select file from resumable_upload where finished_at_s is null'],
    ['segments', 'select file as name from segment'],
    ['posters', 'select blob as name from file'],
    ['files', 'select blob as name from file'],
  ] as const) {
    const named = new Set(rows.all<{ name: string }>(names).map(({ name }) => name))
    const entries = await readdir(join(dataDir, folder), { recursive: true, withFileTypes: true })
    for (const entry of entries.filter((found) => found.isFile())) {
      const path = join(entry.parentPath, entry.name)
      if (!named.has(path.slice(join(dataDir, folder).length + 1))) orphans.push(path)
    }
  }
  return orphans
}
