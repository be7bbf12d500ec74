import { open, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Installed, listSegments, untilFinished } from '../data-folder.ts'
import { startSharedReelgate } from '../in-process.ts'
import { createTusClient } from '../ingest/tus-client.ts'
import { makeLocation } from '../installation-folder.ts'
import { DATABASE } from '../postgres.ts'
import { changeRows, readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'
import type { Call, Op, Seen } from './history.ts'
import { examine, type Memory, newMemory } from './inspect-data-folder.ts'
import { hashOf, judge, newWorld, type Observation, PAGE, type World } from './invariants.ts'

// A checker that sees nothing would let every crash test pass: each promise is broken here by hand, and must be missed.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let videoId: string
let memory: Memory
beforeAll(async () => {
  reelgate = await startSharedReelgate()
  const { owner } = reelgate
  await owner.call('POST', '/api/hooks', { body: { value: 'https://8.8.8.8/', status: 0 } })
  videoId = await owner.readyVideo(await makeVideo({ seconds: 1 }))
  await untilFinished(reelgate, videoId)
  await owner.call('POST', '/api/videos/tags', { body: { videos: [videoId], tags: ['news'] } })
  await reelgate.newViewer().redeem(await owner.issueOtp(videoId))
  const tus = createTusClient(owner)
  await tus.patch((await tus.create(100)).address, 0, 'x'.repeat(50))
  await reelgate.stop() // in order: what a kill may leave lying is not what is looked for here
  memory = newMemory()
  expect(await examine(reelgate, memory)).toEqual({ breaches: [], orphans: [] })
})
afterAll(() => reelgate.remove())

const AGAIN = `insert into delivery (webhook_id, sequence, event, body, time_ms, state, finished_at_s)
  select webhook_id, 3, event, body, time_ms, state, 1 from delivery where event = 'video:ready'`

type Harm = [what: string, harm: string | ((copy: Installed) => Promise<void>), seen: RegExp]

const HARMS: readonly Harm[] = [
  ['an account’s counter is off', 'update account set video_count = 3', /the counter says 3, there are 2/],
  ['a tag’s counter is off', 'update tag set video_count = 2', /tag .* news: the counter says 2, there are 1/],
  ['a folder’s counter is off', 'update folder set video_count = 3', /videos in folder root: the counter says 3, there are 2/],
  ['a video lies in a folder that is not there', `update video set folder_id = 'x'`, /folder of .*: .* there are 0/],
  ['a video is not in the search index', 'delete from video_text', /search index/],
  ['a video that is gone is in the search index', 'update video_text set rowid = rowid + 99', /search index of what is gone/],
  ['a state goes back', `update video set status = 'Processing'`, /went back/],
  ['a change number goes back', 'update account set change_number = 1', /change number/],
  ['a run is counted twice', 'update chunk set attempt = 0', /attempts of chunk/],
  ['a source’s row is lost', 'delete from source', /has no source/],
  ['a policy can be used again', 'update upload_policy set spent_at_s = null', /policy/],
  [
    'what arrived of an upload is lost',
    async (copy) => rm(join(copy.dataDir, 'sources', fileOf(copy, 'resumable_upload'))),
    /0 bytes are stored instead of 48/,
  ],
  ['an unfinished upload loses its key', 'update resumable_upload set wrapped_key = null', /has a key, or has none/],
  ['a plan is lost', 'delete from generation', /generation 1, which is not there/],
  ['a chunk is lost', `delete from chunk where kind = 'video'`, /in 0 chunks/],
  ['a segment’s row is lost', 'delete from segment where rendition_id = 1', /missing although its chunk is done/],
  ['an init segment is lost', 'update rendition set init = null', /without its init segment/],
  ['a poster’s row is lost', `delete from file where type = 'poster'`, /without a poster/],
  ['a segment gets another text', `update segment set file = file || 'x'`, /another text/],
  ['an OTP may be spent again', 'update otp set spent_at_s = null', /spent without a session, or the reverse/],
  ['a session is forgotten', 'delete from playback_session', /spent without a session, or the reverse/],
  [
    'a stream has a slot too many',
    `insert into stream_slot select id, 'ann', 2, 'x', 0, 0 from account`,
    /ann holds a stream’s slot that no session may have/,
  ],
  ['a video is removed by half', 'delete from video', /which is no video/],
  ['a deleted video keeps its keys and sessions', 'update video set deleted_at_s = 1', /key of it is kept|outlives/],
  ['a failure has no reason', `update video set status = 'Encoding error', status_reason = null`, /without a reason/],
  ['a segment’s file is lost', async (copy) => rm(join(copy.dataDir, 'segments', firstSegment(copy))), /cannot be opened/],
  ['a segment is cut short', async (copy) => truncate(join(copy.dataDir, 'segments', firstSegment(copy)), 64), /has 64 bytes/],
  ['a segment is another', (copy) => overwrite(join(copy.dataDir, 'segments', firstSegment(copy))), /cannot be opened/],
  ['a source is changed', (copy) => overwrite(join(copy.dataDir, 'sources', fileOf(copy, 'source'))), /source/],
  [
    'a poster is changed',
    (copy) => overwrite(join(copy.dataDir, 'posters', blobOf(copy, 'poster'))),
    /a poster cannot be opened/,
  ],
  ['an event is not delivered', `delete from delivery where event = 'video:readyall'`, /readyall .* was not delivered|gap/],
  ['no event is delivered', 'delete from delivery; update webhook set last_sequence = 0', /video:ready .* was not delivered/],
  ['an event is delivered twice', `${AGAIN}; update webhook set last_sequence = 3`, /video:ready .* was delivered twice/],
  ['an event is delivered that never happened', `update delivery set event = 'video:deleted'`, /for a video that is ready/],
  ['a delivery has the wrong number', AGAIN, /numbered without a gap/],
]

/** What PostgreSQL does not allow, or checks itself. */
const HARMS_OF_SQLITE: readonly Harm[] = [
  ['a foreign key points nowhere', 'pragma foreign_keys = off; delete from api_key; delete from account', /foreign key/],
  ['the database is damaged', damagePage, /tree|page|malformed|index|database/i],
]

const harms = DATABASE === 'sqlite' ? [...HARMS, ...HARMS_OF_SQLITE] : HARMS

test.each(harms)('the examination of a stopped folder sees it when %s', async (_, harm, seen) => {
  const copy = await makeLocation({ copyOf: reelgate })
  try {
    if (typeof harm === 'string') changeRows(copy, harm)
    else await harm(copy)
    const remembered = { ...structuredClone(memory), read: new Set<string>() }
    const { breaches } = await examine(copy, remembered).catch((error) => ({ breaches: [String(error)] }))
    expect(breaches.join('\n')).toMatch(seen)
  } finally {
    await copy.remove()
  }
})

test('a file that no row names is found', async () => {
  const orphan = join(reelgate.dataDir, 'sources', 'orphan.sealed')
  await writeFile(orphan, 'x')
  expect((await examine(reelgate, newMemory())).orphans).toEqual([orphan])
  await rm(orphan)
})

const firstSegment = (copy: Installed) => listSegments(copy, videoId)[0]?.file ?? ''
const blobOf = (copy: Installed, type: string) =>
  readRows<{ blob: string }>(copy, 'select blob from file where type = ?', type)[0]?.blob ?? ''
const fileOf = (copy: Installed, table: string) => readRows<{ file: string }>(copy, `select file from ${table}`)[0]?.file ?? ''

async function overwrite(path: string): Promise<void> {
  const { length } = await readFile(path)
  await writeFile(path, Buffer.alloc(length, 'x'))
}

async function damagePage(copy: Installed): Promise<void> {
  changeRows(copy, 'pragma wal_checkpoint(truncate)')
  await using file = await open(join(copy.dataDir, 'reelgate.db'), 'r+')
  for (let page = 2; page < 12; page++) await file.write(Buffer.alloc(40, 0xff), 0, 40, page * 4096)
}

// --- the judge ---

const OTP = 'o'.repeat(64)
const LATER = { client: 0, status: 200, outcome: 'ok' } as const
let order = 0
/** A call after all before it. */
const did = (call: Call, more: Partial<Pick<Op, 'outcome' | 'status' | 'start' | 'end'>> = {}): Op => ({
  ...call,
  ...LATER,
  start: order++,
  end: order++,
  ...more,
})
const unknown = { outcome: 'info', status: 0 } as const
const refused = { outcome: 'fail', status: 404 } as const

const video = (more: Partial<Seen> = {}): Seen => ({ id: 'v', status: 'ready', title: 'a title', tags: ['news'], ...more })
const seeing = (...videos: Seen[]): Partial<Observation> => ({
  videos: new Map(videos.map((seen) => [seen.id, seen])),
  count: videos.length,
})
const fresh = (id: string) => video({ id, status: 'PRE-Upload', title: id, tags: [] })

/** One ready video `v` with a tag, an OTP spent by `s`, and a key; the list says so by default. */
function judged(ops: readonly Op[], observed: Partial<Observation> = {}): string {
  const world: World = {
    ...newWorld(),
    videos: new Map([
      ['v', { title: 'a title', tags: new Set(['news']), rank: 3, sha256: 'sent', isVideo: true, arrivedBytes: 0 }],
    ]),
    gone: new Set(['old']),
    otps: new Map([[OTP, { videoId: 'v', session: 's' }]]),
    keys: new Map([['k', { secret: '', isRevoked: false }]]),
  }
  const all: Observation = {
    ...{ count: 1, videos: new Map([['v', video()]]), answeredFor: [], sources: new Map([['v', 'sent']]) },
    ...{ sessions: new Map([[hashOf(OTP), ['s']]]), otpHashes: new Set([hashOf(OTP)]) },
    ...{ windowKeys: new Map([['v', 'ff']]), workingKeys: new Set(['k']), arrivedBytes: new Map() },
    ...observed,
  }
  return judge(world, ops, all).join('\n')
}

const create = (videoId?: string) => ({ kind: 'create', title: 'n', videoId }) as const
const remove = (...videoIds: string[]) => ({ kind: 'delete', videoIds }) as const
const tag = (how: 'add' | 'replace' | 'remove', videoIds: string[], ...tags: string[]) =>
  ({ kind: 'tag', how, videoIds, tags }) as const
const upload = (sha256: string) => ({ kind: 'upload', videoId: 'n', sha256, isVideo: true }) as const
const part = (sentBytes: number, arrivedBytes?: number) => ({ kind: 'part', videoId: 'n', sentBytes, arrivedBytes }) as const
const list = (...seen: Seen[]) => ({ kind: 'list', seen }) as const
const redeem = (session?: string) => ({ kind: 'redeem', videoId: 'v', otp: OTP, viewer: 1, session }) as const
/** A page that is one short of a full one, of more videos than fit on it; one of them is deleted while the page is read, or none. */
function pageOneShort(deleted: string[]): string {
  const ids = Array.from({ length: PAGE + 5 }, (_, i) => `n${i}`)
  const made = ids.map((id) => did({ ...create(id), title: id }))
  const reading = { start: order + 1, end: order + 2 }
  const removing = deleted.map((id) => did(remove(id), { start: order, end: order + 3 }))
  order += 4
  const left = ids.filter((id) => !deleted.includes(id)).map(fresh)
  return judged([...made, ...removing, did(list(...ids.slice(1, PAGE).map(fresh)), reading)], seeing(video(), ...left))
}
const edit = (title: string) => ({ kind: 'edit', videoId: 'v', title }) as const

test.each<[string, () => string]>([
  ['nothing happened', () => judged([])],
  ['a creation without an answer has not happened', () => judged([did(create(), unknown)])],
  ['a creation without an answer has happened', () => judged([did(create(), unknown)], seeing(video(), fresh('n')))],
  ['a deletion without an answer has happened', () => judged([did(remove('v'), unknown)], seeing())],
  [
    'of two titles at the same time the first stays',
    () => judged([did(edit('x'), { start: 1, end: 9 }), did(edit('y'), { start: 2, end: 8 })], seeing(video({ title: 'x' }))),
  ],
  [
    'a call was refused because the video was being deleted',
    () => judged([did(edit('x'), { ...refused, start: 1, end: 4 }), did(remove('v'), { start: 2, end: 9 })], seeing()),
  ],
  ['a full page lacks a video that was deleted while it was read', () => pageOneShort(['n0'])],
  [
    'an upload without an answer has happened',
    () =>
      judged([did(create('n')), did(upload('new'), unknown)], {
        ...seeing(video(), { ...fresh('n'), status: 'Queued', title: 'n' }),
        sources: new Map([
          ['v', 'sent'],
          ['n', 'new'],
        ]),
      }),
  ],
  [
    'a part without an answer has arrived',
    () =>
      judged([did(create('n')), did(part(5)), did(part(9), unknown)], {
        ...seeing(video(), fresh('n')),
        arrivedBytes: new Map([['n', 9]]),
      }),
  ],
])('the judge is content when %s', (_, verdict) => {
  expect(verdict()).toBe('')
})

test.each<[string, () => string, RegExp]>([
  ['a video is lost', () => judged([], seeing()), /was lost/],
  ['an acknowledged creation is lost', () => judged([did(create('n'))]), /video n was lost/],
  ['a deleted video comes back', () => judged([], seeing(video(), fresh('old'))), /deleted and is listed/],
  ['an acknowledged deletion is undone', () => judged([did(remove('v'))]), /deleted and is listed/],
  ['a deleted video is answered for', () => judged([], { answeredFor: ['old'] }), /answered for/],
  ['a video comes from nowhere', () => judged([], seeing(video(), fresh('n'))), /never created/],
  ['the count is off', () => judged([], { count: 2 }), /counts 2/],
  ['a deletion happens by half', () => judged([did(create('n')), did(remove('v', 'n'), unknown)], seeing(video())), /by half/],
  [
    'a tag call happens by half',
    () =>
      judged(
        [did(create('n')), did(tag('add', ['v', 'n'], 'x'), unknown)],
        seeing(video({ tags: ['news', 'x'] }), { ...fresh('n') }),
      ),
    /by half/,
  ],
  ['an acknowledged tag is lost', () => judged([did(tag('add', ['v'], 'x'))]), /without the tag x/],
  ['a removed tag stays', () => judged([did(tag('remove', ['v'], 'news'))]), /with the tag news/],
  [
    'a replaced tag stays',
    () => judged([did(tag('replace', ['v'], 'x'))], seeing(video({ tags: ['news', 'x'] }))),
    /with the tag news/,
  ],
  ['a title is an old one', () => judged([did(edit('x')), did(edit('y'))], seeing(video({ title: 'x' }))), /with the title x/],
  [
    'a list shows an old title',
    () => judged([did(edit('x')), did(list(video()))], seeing(video({ title: 'x' }))),
    /with the title a title/,
  ],
  ['an upload is lost', () => judged([did(create('n')), did(upload('new'))], seeing(video(), fresh('n'))), /was lost/],
  [
    'a source is not what was sent',
    () =>
      judged([did(create('n')), did(upload('new'))], {
        ...seeing(video(), { ...fresh('n'), status: 'Queued' }),
        sources: new Map([
          ['v', 'sent'],
          ['n', 'other'],
        ]),
      }),
    /not what was sent/,
  ],
  [
    'an acknowledged part is lost',
    () => judged([did(create('n')), did(part(5))], { ...seeing(video(), fresh('n')), arrivedBytes: new Map([['n', 4]]) }),
    /5 bytes were acknowledged, and 4 are there/,
  ],
  [
    'an acknowledged part is asked for again',
    () =>
      judged([did(create('n')), did(part(5)), did(part(0, 4))], {
        ...seeing(video(), fresh('n')),
        arrivedBytes: new Map([['n', 5]]),
      }),
    /5 bytes were acknowledged, and 4 are there/,
  ],
  [
    'an upload with an acknowledged part is lost',
    () => judged([did(create('n')), did(part(5))], seeing(video(), fresh('n'))),
    /what arrived of n was lost/,
  ],
  ['a source changes', () => judged([], { sources: new Map([['v', 'other']]) }), /has changed/],
  ['a state goes back', () => judged([], seeing(video({ status: 'Processing' }))), /went back/],
  ['a list shows an earlier state', () => judged([did(list(video({ status: 'Queued' })))]), /went back/],
  ['a list shows a deleted video', () => judged([did(remove('v')), did(list(video()))], seeing()), /showed the deleted/],
  ['a list lacks a video', () => judged([did(list())]), /lacked/],
  ['a page is one short of a full one for no reason', () => pageOneShort([]), /lacked/],
  [
    'a deleted video gives a key',
    () => judged([did(remove('v')), did({ kind: 'key', videoId: 'v', session: 's', key: 'ff' })], seeing()),
    /gave a key/,
  ],
  ['a key opens nothing', () => judged([did({ kind: 'key', videoId: 'v', session: 's', key: '00' })]), /opens nothing/],
  ['an OTP opens two sessions', () => judged([did(redeem('t'))]), /two sessions/],
  ['an OTP has two sessions', () => judged([], { sessions: new Map([[hashOf(OTP), ['s', 't']]]) }), /two sessions/],
  ['a session is lost', () => judged([], { sessions: new Map() }), /session of .* was lost/],
  ['an OTP is lost', () => judged([], { otpHashes: new Set() }), /OTP .* was lost/],
  [
    'an OTP was redeemed without a request',
    () => {
      const otp = 'p'.repeat(64)
      return judged([did({ kind: 'otp', videoId: 'v', otp })], {
        otpHashes: new Set([OTP, otp].map(hashOf)),
        sessions: new Map([OTP, otp].map((text) => [hashOf(text), ['s']])),
      })
    },
    /opened a session without a request/,
  ],
  ['a revoked key works', () => judged([did({ kind: 'revoke-key', keyId: 'k' })]), /revoked key k works/],
  ['a key is lost', () => judged([], { workingKeys: new Set() }), /key k was lost/],
  ['a call is refused without a reason', () => judged([did(edit('x'), refused)]), /without a reason/],
  ['the server answers with 500', () => judged([did(edit('a title'), { outcome: 'info', status: 500 })]), /answered with 500/],
])('the judge sees it when %s', (_, verdict, seen) => {
  expect(verdict()).toMatch(seen)
})
