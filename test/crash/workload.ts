import { createHash, randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { sendCommand } from '../../src/control/socket.ts'
import type { UploadCredentials, VideoBody } from '../client.ts'
import { BOUNDARY, formBody, uploadParts } from '../ingest/raw-form.ts'
import type { Reelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import type { Chance } from '../seeded-random.ts'
import { createViewer, type Viewer } from '../viewer.ts'
import type { CallOf, History, Op, Seen } from './history.ts'
import { PAGE } from './invariants.ts'

// The owner's servers and the viewers of one installation. Every call goes over the real interfaces and into the history.

/** What the clients know of what is there; the judge corrects it after each round. */
export type Known = {
  /** Videos that nobody has tried to delete. */
  videos: Set<string>
  /** Of those, the ones that play. */
  ready: Set<string>
  /** Credentials that no upload has used yet. */
  credentials: Map<string, UploadCredentials>
  /** OTPs that nobody has tried to redeem. */
  otps: { otp: string; videoId: string }[]
  viewers: Viewer[]
  /** Viewers that play, by the number under which they redeemed. */
  playing: { viewer: number; videoId: string }[]
  /** Live API keys: their secrets by id. */
  keys: Map<string, string>
  /** The last form that was sent for a video, to send it again when no answer came. */
  sent: Map<string, { issued: UploadCredentials; clear: Buffer; isVideo: boolean }>
}

export type Clients = ReturnType<typeof createClients>

export const TAGS = ['news', 'sport', 'Sport', 'draft', 'ünïcode', 'a b']
/** Encoding costs more than all else: so many videos a round keep the encoders busy and the round short. */
const VIDEOS_A_ROUND = 3
const MOST_VIDEOS = 50

export function createClients(reelgate: Reelgate, history: History, chance: Chance, files: readonly Buffer[]) {
  const { owner } = reelgate
  const known: Known = {
    videos: new Set(),
    ready: new Set(),
    credentials: new Map(),
    otps: [],
    viewers: [],
    playing: [],
    keys: new Map(),
    sent: new Map(),
  }
  let titles = 0
  let videosLeft = 0
  const accountId = readRows<{ id: string }>(reelgate, 'select id from account')[0]?.id ?? ''

  const one = <T>(from: Iterable<T>): T | undefined => {
    const list = [...from]
    return list[Math.floor(chance.between(0, list.length))]
  }

  // --- calls ---

  async function create(client: number) {
    const title = `video ${++titles}`
    const op = await history.record<CallOf<'create'>>(client, { kind: 'create', title }, async () => {
      const answer = await owner.call('PUT', `/api/videos?title=${encodeURIComponent(title)}`)
      if (!answer.ok) return { status: answer.status }
      const issued = (await answer.json()) as UploadCredentials
      known.credentials.set(issued.videoId, issued)
      return { status: answer.status, told: { videoId: issued.videoId } }
    })
    if (op.outcome === 'ok' && op.videoId) known.videos.add(op.videoId)
    return op
  }

  /** @param held waits before the last bytes are sent */
  async function upload(
    client: number,
    videoId: string,
    { clear, isVideo }: { clear: Buffer; isVideo: boolean },
    held?: () => Promise<unknown>,
  ) {
    const issued = known.credentials.get(videoId)
    if (!issued) throw new Error(`no credentials for ${videoId}`)
    known.credentials.delete(videoId)
    known.sent.set(videoId, { issued, clear, isVideo })
    const sha256 = createHash('sha256').update(clear).digest('hex')
    const form = formBody(uploadParts(issued, clear, { success_action_status: '201' }))
    return history.record<CallOf<'upload'>>(client, { kind: 'upload', videoId, sha256, isVideo }, async () => {
      const headers = { 'Content-Type': `multipart/form-data; boundary=${BOUNDARY}` }
      const body = held ? inPieces(form, held) : form
      const answer = await fetch(issued.clientPayload.uploadLink, {
        method: 'POST',
        headers,
        body,
        duplex: 'half',
      } as RequestInit)
      void answer.arrayBuffer().catch(() => undefined) // the status alone is the acknowledgement
      return { status: answer.status }
    })
  }

  /** The same form once more, after an answer that never came. */
  function uploadAgain(client: number, videoId: string) {
    const { issued, clear, isVideo } = known.sent.get(videoId) ?? {}
    if (!issued || !clear || isVideo === undefined) throw new Error(`nothing was sent for ${videoId}`)
    known.credentials.set(videoId, issued)
    return upload(client, videoId, { clear, isVideo })
  }

  const list = (client: number) =>
    history.record<CallOf<'list'>>(client, { kind: 'list' }, async () => {
      const answer = await owner.call('GET', `/api/videos?limit=${PAGE}`)
      if (!answer.ok) return { status: answer.status }
      const { rows } = (await answer.json()) as { rows: VideoBody[] }
      return { status: answer.status, told: { seen: rows.map(seenOf) } }
    })

  const readOne = (client: number, videoId: string) =>
    history.record<CallOf<'one'>>(client, { kind: 'one', videoId }, async () => {
      const answer = await owner.call('GET', `/api/videos/${videoId}`)
      if (!answer.ok) return { status: answer.status }
      return { status: answer.status, told: { seen: [seenOf((await answer.json()) as VideoBody)] } }
    })

  const edit = (client: number, videoId: string) => {
    const title = `video ${++titles} edited`
    return history.record<CallOf<'edit'>>(client, { kind: 'edit', videoId, title }, async () => {
      const { status } = await owner.call('POST', `/api/videos/${videoId}`, { body: { title } })
      return { status }
    })
  }

  const METHODS = { add: 'POST', replace: 'PUT', remove: 'DELETE' } as const
  const tag = (client: number, how: keyof typeof METHODS, videoIds: string[], tags: string[]) =>
    history.record<CallOf<'tag'>>(client, { kind: 'tag', how, videoIds, tags }, async () => {
      const { status } = await owner.call(METHODS[how], '/api/videos/tags', { body: { videos: videoIds, tags } })
      return { status }
    })

  async function issueOtp(client: number, videoId: string, version: 'current' | 'v2' = 'current', options = {}) {
    const op = await history.record<CallOf<'otp'>>(client, { kind: 'otp', videoId }, async () => {
      const answer =
        version === 'current'
          ? await owner.call('POST', `/api/videos/${videoId}/otp`, { body: { ttl: 3600, ...options } })
          : await fetch(`${reelgate.url}/v2/otp?video=${videoId}`, {
              method: 'POST',
              body: new URLSearchParams({ clientSecretKey: owner.apiKey, ttl: '3600' }),
            })
      const { otp, error } = (await answer.json()) as { otp?: string; error?: string }
      // The earlier interface says 200 to a video that is gone.
      return { status: error && answer.ok ? 404 : answer.status, told: { otp } }
    })
    if (op.outcome === 'ok' && op.otp) known.otps.push({ otp: op.otp, videoId })
    return op
  }

  /** Redeems as a browser of its own, or again as the one that tried before. */
  async function redeem(client: number, { otp, videoId }: { otp: string; videoId: string }, again?: number) {
    const viewer = again ?? known.viewers.push(createViewer(reelgate.url)) - 1
    const browser = known.viewers[viewer]
    if (!browser) throw new Error(`no viewer ${viewer}`)
    const op = await history.record<CallOf<'redeem'>>(client, { kind: 'redeem', videoId, otp, viewer }, async () => {
      const page = browser.state.ticket ? undefined : await browser.openPage(`?otp=${otp}`)
      if (page && !page.ok) return { status: page.status }
      let outcome = await browser.redeem(otp)
      if (outcome.body.code === 'proof-stale') outcome = await browser.redeem(otp) // its nonce was of the start before
      return { status: outcome.status, told: outcome.playing ? { session: String(outcome.body.session) } : {} }
    })
    if (op.outcome === 'ok') known.playing.push({ viewer, videoId })
    return op
  }

  const askKey = (client: number, { viewer, videoId }: { viewer: number; videoId: string }) => {
    const browser = known.viewers[viewer]
    if (!browser) throw new Error(`no viewer ${viewer}`)
    return history.record<CallOf<'key'>>(client, { kind: 'key', videoId, session: browser.state.session }, async () => {
      let answer = await browser.key(0)
      if (answer.status === 401) answer = await browser.key(0)
      const bytes = Buffer.from(await answer.arrayBuffer())
      return { status: answer.status, told: answer.ok ? { key: bytes.toString('hex') } : {} }
    })
  }

  const remove = (client: number, videoIds: string[]) => {
    for (const videoId of videoIds) {
      known.videos.delete(videoId)
      known.ready.delete(videoId)
      known.credentials.delete(videoId)
    }
    return history.record<CallOf<'delete'>>(client, { kind: 'delete', videoIds }, async () => {
      const { status } = await owner.call('DELETE', `/api/videos?videos=${videoIds.join(',')}`)
      return { status }
    })
  }

  /** Through the control socket, as the command line does. */
  async function makeKey(client: number) {
    const op = await history.record<CallOf<'make-key'>>(client, { kind: 'make-key' }, async () => {
      const args = { account: accountId, name: 'a site', permissions: ['viewer'] }
      const { keyId, apiKey } = (await sendCommand(socketOf(reelgate), 'key create', args)) as { keyId: string; apiKey: string }
      return { status: 200, told: { keyId, secret: apiKey } }
    })
    if (op.outcome === 'ok' && op.keyId && op.secret) known.keys.set(op.keyId, op.secret)
    return op
  }

  const revokeKey = (client: number, keyId: string) => {
    known.keys.delete(keyId)
    return history.record<CallOf<'revoke-key'>>(client, { kind: 'revoke-key', keyId }, async () => {
      await sendCommand(socketOf(reelgate), 'key revoke', { keyId })
      return { status: 200 }
    })
  }

  const useKey = (client: number, keyId: string, secret: string) =>
    history.record<CallOf<'use-key'>>(client, { kind: 'use-key', keyId }, async () => {
      const headers = { Authorization: `Apisecret ${secret}` }
      return { status: (await owner.call('GET', '/api/videos?limit=1', { headers })).status }
    })

  // --- what a client does next ---

  async function uploadSomething(client: number): Promise<Op> {
    const videoId = one(known.credentials.keys())
    if (!videoId) return create(client)
    const file = videosLeft > 0 && chance.next() < 0.5 ? one(files) : undefined
    if (file) videosLeft--
    const clear = file ? uniqueVideo(file) : noVideo(Math.floor(chance.between(40, 400_000)))
    const slow = chance.next() < 0.5 ? () => pause(chance.between(0, 300)) : undefined
    return upload(client, videoId, { clear, isVideo: file !== undefined }, slow)
  }

  async function tagSomething(client: number): Promise<Op> {
    const videoIds = [one(known.videos), one(known.videos)].flatMap((id) => id ?? [])
    if (videoIds.length === 0) return create(client)
    const how = one(Object.keys(METHODS) as (keyof typeof METHODS)[]) ?? 'add'
    const own = [`own ${++titles} a`, `own ${titles} b`]
    const tags = chance.next() < 0.4 && how !== 'remove' ? own : [one(TAGS) ?? '', one(TAGS) ?? '']
    return tag(client, how, [...new Set(videoIds)], [...new Set(tags)])
  }

  const otpOfSomething = (client: number) => {
    const videoId = one(known.ready)
    return videoId ? issueOtp(client, videoId, chance.next() < 0.5 ? 'current' : 'v2') : create(client)
  }

  /** Sometimes two browsers at once: the link was passed on. */
  async function redeemSomething(client: number): Promise<Op> {
    const at = Math.floor(chance.between(0, known.otps.length))
    const [otp] = known.otps.splice(at, 1)
    if (!otp) return otpOfSomething(client)
    const rival = chance.next() < 0.3 ? redeem(client, otp) : undefined
    const op = await redeem(client, otp)
    await rival
    return op
  }

  /** One or two; many when there are too many. Two videos that play are left for those who want to watch. */
  async function removeSomething(client: number): Promise<Op> {
    const few = known.ready.size <= 2
    const candidates = [...known.videos].filter((videoId) => !few || !known.ready.has(videoId))
    const picks = known.videos.size > MOST_VIDEOS ? [1, 2, 3, 4, 5, 6] : [1, 2]
    const videoIds = new Set(picks.flatMap(() => one(candidates) ?? []))
    return videoIds.size > 0 ? remove(client, [...videoIds]) : create(client)
  }

  async function withKeys(client: number): Promise<Op> {
    const [keyId, secret] = one(known.keys) ?? []
    if (!keyId || !secret || known.keys.size < 4) return makeKey(client)
    return chance.next() < 0.7 ? useKey(client, keyId, secret) : revokeKey(client, keyId)
  }

  const withOne = (client: number, call: (client: number, videoId: string) => Promise<Op>) => {
    const videoId = one(known.videos)
    return videoId ? call(client, videoId) : create(client)
  }

  const ACTS: [weight: number, act: (client: number) => Promise<Op>][] = [
    [14, create],
    [10, uploadSomething],
    [8, list],
    [10, (client) => withOne(client, readOne)],
    [10, (client) => withOne(client, edit)],
    [16, tagSomething],
    [16, otpOfSomething],
    [14, redeemSomething],
    [10, playSomething],
    [4, removeSomething],
    [3, withKeys],
  ]

  function playSomething(client: number): Promise<Op> {
    const playing = one(known.playing)
    return playing ? askKey(client, playing) : redeemSomething(client)
  }

  function nextAct(): (client: number) => Promise<Op> {
    if (known.videos.size > MOST_VIDEOS) return removeSomething
    const total = ACTS.reduce((sum, [weight]) => sum + weight, 0)
    let at = chance.between(0, total)
    for (const [weight, act] of ACTS) {
      at -= weight
      if (at < 0) return act
    }
    return create
  }

  /** Eight clients call one thing after the other, until their server is gone. */
  async function run(count: number): Promise<void> {
    videosLeft = VIDEOS_A_ROUND
    await Promise.all(
      Array.from({ length: count }, async (_, client) => {
        for (let op: Op | undefined; op?.outcome !== 'info'; ) op = await nextAct()(client)
      }),
    )
  }

  /** Forgets what turned out to be gone, and learns what plays by now. */
  function learn({ videos }: { videos: ReadonlyMap<string, Seen> }): void {
    known.videos = new Set(videos.keys())
    known.ready = new Set([...videos.values()].filter(({ status }) => status === 'ready').map(({ id }) => id))
    known.otps = known.otps.filter(({ videoId }) => videos.has(videoId))
    known.playing = known.playing.filter(({ videoId }) => videos.has(videoId)).slice(-50)
    for (const videoId of known.credentials.keys())
      if (videos.get(videoId)?.status !== 'PRE-Upload') known.credentials.delete(videoId)
    known.sent.clear()
  }

  return {
    known,
    learn,
    uploadAgain,
    run,
    create,
    upload,
    edit,
    tag,
    issueOtp,
    redeem,
    askKey,
    remove,
    makeKey,
    revokeKey,
    useKey,
    readOne,
  }
}

/** Text, so that no demuxer takes it for anything; each is another. */
export function noVideo(sizeBytes: number): Buffer {
  const text = Buffer.alloc(sizeBytes, 'This is no video. ')
  text.write(randomBytes(16).toString('hex'))
  return text
}

/** The same video as a file of its own: a `free` box that no player reads follows it. */
export function uniqueVideo(video: Buffer): Buffer {
  const box = Buffer.concat([Buffer.from([0, 0, 0, 24]), Buffer.from('free'), randomBytes(16)])
  return Buffer.concat([video, box])
}

const socketOf = ({ dataDir }: Reelgate) => `${dataDir}/control.sock`

export function seenOf({ id, status, title, tags }: VideoBody): Seen {
  return { id, status, title, tags: Array.isArray(tags) ? tags : [] }
}

/** All but the end of the file and of the form, then what is waited for, then the rest. */
function inPieces(body: Buffer, held: () => Promise<unknown>): ReadableStream<Uint8Array> {
  return ReadableStream.from(
    (async function* () {
      yield body.subarray(0, -100)
      await held()
      yield body.subarray(-100)
    })(),
  )
}
