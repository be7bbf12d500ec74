import { randomBytes } from 'node:crypto'
import { sendCommand } from '../../src/control/socket.ts'
import { post, type UploadCredentials, type VideoBody } from '../client.ts'
import { sourceHash } from '../data-folder.ts'
import { BOUNDARY, formBody, uploadParts } from '../ingest/raw-form.ts'
import { createTusClient, metadataOf, type TusClient } from '../ingest/tus-client.ts'
import type { Reelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { createViewer, type Viewer } from '../viewer.ts'
import type { CallOf, History, Seen } from './history.ts'
import { PAGE } from './invariants.ts'

/** What the clients know of what is there; the judge corrects it after each round. */
export type Known = {
  /** Videos that no client has tried to delete. */
  videos: Set<string>
  /** Of those, the ones that play. */
  ready: Set<string>
  /** Credentials that no upload has used yet. */
  credentials: Map<string, UploadCredentials>
  /** OTPs that no client has tried to redeem. */
  otps: { otp: string; videoId: string }[]
  viewers: Viewer[]
  /** Viewers that play, by the number under which they redeemed. */
  playing: { viewer: number; videoId: string }[]
  /** Live API keys: their secrets by id. */
  keys: Map<string, string>
  /** The last form that was sent for a video, to send it again when no answer came. */
  sent: Map<string, { issued: UploadCredentials; clear: Buffer<ArrayBuffer>; isVideo: boolean }>
  /** Files that arrive in parts, of which no client is sending one. */
  arriving: Map<string, Arriving>
  /** Of those, the ones that a client took to send the next part. */
  taken: Map<string, Arriving>
}

type Arriving = { tus: TusClient; address: string; clear: Buffer<ArrayBuffer>; isVideo: boolean }

export const METHODS = { add: 'POST', replace: 'PUT', remove: 'DELETE' } as const
export type TagChange = keyof typeof METHODS

/** The owner's servers and the viewers of one installation. Every call goes over the real interfaces and into the history. */
export class Clients {
  #reelgate: Reelgate
  #history: History
  #accountId: string
  #tus: TusClient
  #titles = 0
  readonly known: Known = {
    videos: new Set(),
    ready: new Set(),
    credentials: new Map(),
    otps: [],
    viewers: [],
    playing: [],
    keys: new Map(),
    sent: new Map(),
    arriving: new Map(),
    taken: new Map(),
  }

  constructor(reelgate: Reelgate, history: History) {
    this.#reelgate = reelgate
    this.#history = history
    this.#accountId = readRows<{ id: string }>(reelgate, 'select id from account')[0]?.id ?? ''
    this.#tus = createTusClient(reelgate.owner)
  }

  async create(client: number) {
    const title = `video ${++this.#titles}`
    const op = await this.#history.record<CallOf<'create'>>(client, { kind: 'create', title }, async () => {
      const answer = await this.#reelgate.owner.call('PUT', `/api/videos?title=${encodeURIComponent(title)}`)
      if (!answer.ok) return { status: answer.status }
      const issued = (await answer.json()) as UploadCredentials
      this.known.credentials.set(issued.videoId, issued)
      return { status: answer.status, reported: { videoId: issued.videoId } }
    })
    if (op.outcome === 'ok' && op.videoId) this.known.videos.add(op.videoId)
    return op
  }

  /** @param held waits before the last bytes are sent */
  async upload(
    client: number,
    videoId: string,
    { clear, isVideo }: { clear: Buffer<ArrayBuffer>; isVideo: boolean },
    held?: () => Promise<unknown>,
  ) {
    const issued = this.known.credentials.get(videoId)
    if (!issued) throw new Error(`no credentials for ${videoId}`)
    this.known.credentials.delete(videoId)
    this.known.sent.set(videoId, { issued, clear, isVideo })
    const sha256 = sourceHash(clear).toString('hex')
    const form = formBody(uploadParts(issued, clear, { success_action_status: '201' }))
    return this.#history.record<CallOf<'upload'>>(client, { kind: 'upload', videoId, sha256, isVideo }, async () => {
      const headers = { 'Content-Type': `multipart/form-data; boundary=${BOUNDARY}` }
      const body = held ? inPieces(form, held) : form
      const answer = await post(issued.clientPayload.uploadLink, { headers, body, duplex: 'half' } as RequestInit)
      void answer.arrayBuffer().catch(() => undefined) // the status alone is the acknowledgement
      return { status: answer.status }
    })
  }

  /** Begins a file that arrives in parts, as the owner or by a token. */
  async beginParts(
    client: number,
    { clear, isVideo }: { clear: Buffer<ArrayBuffer>; isVideo: boolean },
    tus: TusClient = this.#tus,
  ) {
    const title = `video ${++this.#titles}`
    const op = await this.#history.record<CallOf<'create'>>(client, { kind: 'create', title }, async () => {
      const headers = { 'Upload-Length': String(clear.length), 'Upload-Metadata': metadataOf({ title }) }
      const answer = await tus.call('POST', tus.endpoint, headers)
      if (!answer.ok) return { status: answer.status }
      const videoId = answer.headers.get('Reelgate-Video-Id') ?? ''
      const address = new URL(answer.headers.get('Location') ?? '', tus.endpoint).href
      this.known.arriving.set(videoId, { tus, address, clear, isVideo })
      return { status: answer.status, reported: { videoId } }
    })
    if (op.outcome === 'ok' && op.videoId) this.known.videos.add(op.videoId)
    return op
  }

  /**
   * Asks how much has arrived, and sends what follows; no other client sends parts of it meanwhile.
   * @param sizeBytes at most so many; with the last of them it is an upload
   */
  async sendPart(client: number, videoId: string, sizeBytes: number) {
    const arriving = this.known.arriving.get(videoId)
    if (!arriving) throw new Error(`nothing arrives for ${videoId}`)
    const { tus, address, clear, isVideo } = arriving
    this.known.arriving.delete(videoId)
    this.known.taken.set(videoId, arriving)
    const asked = await this.#history.record<CallOf<'part'>>(client, { kind: 'part', videoId, sentBytes: 0 }, async () => {
      const { status, headers } = await tus.head(address)
      return { status, reported: status === 200 ? { arrivedBytes: Number(headers.get('Upload-Offset')) } : {} }
    })
    if (asked.outcome !== 'ok') return asked
    const { arrivedBytes = 0 } = asked
    const sentBytes = Math.min(clear.length, arrivedBytes + sizeBytes)
    const send = async () => ({
      status: (await tus.patch(address, arrivedBytes, clear.subarray(arrivedBytes, sentBytes))).status,
    })
    if (sentBytes === clear.length) {
      const upload = { kind: 'upload', videoId, sha256: sourceHash(clear).toString('hex'), isVideo } as const
      // One whose last answer was lost is confirmed by its offset.
      return this.#history.record<CallOf<'upload'>>(
        client,
        upload,
        arrivedBytes < clear.length ? send : async () => ({ status: 200 }),
      )
    }
    const op = await this.#history.record<CallOf<'part'>>(client, { kind: 'part', videoId, sentBytes }, send)
    if (op.outcome === 'ok') this.known.arriving.set(videoId, arriving)
    return op
  }

  /** What was sent once more, after an answer that never came: the same form, or what is missing of a file in parts. */
  uploadAgain(client: number, videoId: string) {
    const arriving = this.known.taken.get(videoId)
    if (arriving) {
      this.known.arriving.set(videoId, arriving)
      return this.sendPart(client, videoId, arriving.clear.length)
    }
    const { issued, clear, isVideo } = this.known.sent.get(videoId) ?? {}
    if (!issued || !clear || isVideo === undefined) throw new Error(`nothing was sent for ${videoId}`)
    this.known.credentials.set(videoId, issued)
    return this.upload(client, videoId, { clear, isVideo })
  }

  list(client: number) {
    return this.#history.record<CallOf<'list'>>(client, { kind: 'list' }, async () => {
      const answer = await this.#reelgate.owner.call('GET', `/api/videos?limit=${PAGE}`)
      if (!answer.ok) return { status: answer.status }
      const { rows } = (await answer.json()) as { rows: VideoBody[] }
      return { status: answer.status, reported: { seen: rows.map(seenOf) } }
    })
  }

  readOne(client: number, videoId: string) {
    return this.#history.record<CallOf<'one'>>(client, { kind: 'one', videoId }, async () => {
      const answer = await this.#reelgate.owner.call('GET', `/api/videos/${videoId}`)
      if (!answer.ok) return { status: answer.status }
      return { status: answer.status, reported: { seen: [seenOf((await answer.json()) as VideoBody)] } }
    })
  }

  edit(client: number, videoId: string) {
    const title = `video ${++this.#titles} edited`
    return this.#history.record<CallOf<'edit'>>(client, { kind: 'edit', videoId, title }, async () => {
      const { status } = await this.#reelgate.owner.call('POST', `/api/videos/${videoId}`, { body: { title } })
      return { status }
    })
  }

  tag(client: number, how: TagChange, videoIds: string[], tags: string[]) {
    return this.#history.record<CallOf<'tag'>>(client, { kind: 'tag', how, videoIds, tags }, async () => {
      const { status } = await this.#reelgate.owner.call(METHODS[how], '/api/videos/tags', { body: { videos: videoIds, tags } })
      return { status }
    })
  }

  async issueOtp(client: number, videoId: string, version: 'current' | 'v2' = 'current', options = {}) {
    const op = await this.#history.record<CallOf<'otp'>>(client, { kind: 'otp', videoId }, async () => {
      const answer =
        version === 'current'
          ? await this.#reelgate.owner.call('POST', `/api/videos/${videoId}/otp`, { body: { ttl: 3600, ...options } })
          : await fetch(`${this.#reelgate.url}/v2/otp?video=${videoId}`, {
              method: 'POST',
              body: new URLSearchParams({ clientSecretKey: this.#reelgate.owner.apiKey, ttl: '3600' }),
            })
      const { otp, error } = (await answer.json()) as { otp?: string; error?: string }
      // The earlier interface says 200 to a video that is gone.
      return { status: error && answer.ok ? 404 : answer.status, reported: { otp } }
    })
    if (op.outcome === 'ok' && op.otp) this.known.otps.push({ otp: op.otp, videoId })
    return op
  }

  /** Redeems as a browser of its own, or again as the one that tried before. */
  async redeem(client: number, { otp, videoId }: { otp: string; videoId: string }, again?: number) {
    const viewer = again ?? this.known.viewers.push(createViewer(this.#reelgate.url)) - 1
    const browser = this.known.viewers[viewer]
    if (!browser) throw new Error(`no viewer ${viewer}`)
    const op = await this.#history.record<CallOf<'redeem'>>(client, { kind: 'redeem', videoId, otp, viewer }, async () => {
      const page = browser.state.ticket ? undefined : await browser.openPage(`?otp=${otp}`)
      if (page && !page.ok) return { status: page.status }
      let outcome = await browser.redeem(otp)
      // Its nonce was of the start before, or a proxy sent it to a second server after the first had used the proof.
      if (outcome.status === 401) outcome = await browser.redeem(otp)
      return { status: outcome.status, reported: outcome.playing ? { session: String(outcome.body.session) } : {} }
    })
    if (op.outcome === 'ok') this.known.playing.push({ viewer, videoId })
    return op
  }

  askKey(client: number, { viewer, videoId }: { viewer: number; videoId: string }) {
    const browser = this.known.viewers[viewer]
    if (!browser) throw new Error(`no viewer ${viewer}`)
    return this.#history.record<CallOf<'key'>>(client, { kind: 'key', videoId, session: browser.state.session }, async () => {
      let answer = await browser.key(0)
      if (answer.status === 401) answer = await browser.key(0)
      const bytes = Buffer.from(await answer.arrayBuffer())
      return { status: answer.status, reported: answer.ok ? { key: bytes.toString('hex') } : {} }
    })
  }

  remove(client: number, videoIds: string[]) {
    for (const videoId of videoIds) {
      this.known.videos.delete(videoId)
      this.known.ready.delete(videoId)
      this.known.credentials.delete(videoId)
      this.known.arriving.delete(videoId)
    }
    return this.#history.record<CallOf<'delete'>>(client, { kind: 'delete', videoIds }, async () => {
      const { status } = await this.#reelgate.owner.call('DELETE', `/api/videos?videos=${videoIds.join(',')}`)
      return { status }
    })
  }

  /** Through the control socket, as the command line does. */
  async makeKey(client: number) {
    const op = await this.#history.record<CallOf<'make-key'>>(client, { kind: 'make-key' }, async () => {
      const args = { account: this.#accountId, name: 'a site', permissions: ['viewer'] }
      const { keyId, apiKey } = (await sendCommand(socketOf(this.#reelgate), 'key create', args)) as {
        keyId: string
        apiKey: string
      }
      return { status: 200, reported: { keyId, secret: apiKey } }
    })
    if (op.outcome === 'ok' && op.keyId && op.secret) this.known.keys.set(op.keyId, op.secret)
    return op
  }

  revokeKey(client: number, keyId: string) {
    this.known.keys.delete(keyId)
    return this.#history.record<CallOf<'revoke-key'>>(client, { kind: 'revoke-key', keyId }, async () => {
      await sendCommand(socketOf(this.#reelgate), 'key revoke', { keyId })
      return { status: 200 }
    })
  }

  useKey(client: number, keyId: string, secret: string) {
    return this.#history.record<CallOf<'use-key'>>(client, { kind: 'use-key', keyId }, async () => {
      const headers = { Authorization: `Apisecret ${secret}` }
      return { status: (await this.#reelgate.owner.call('GET', '/api/videos?limit=1', { headers })).status }
    })
  }

  /** Forgets what turned out to be gone, and learns what plays by now. */
  learn({ videos }: { videos: ReadonlyMap<string, Seen> }): void {
    this.known.videos = new Set(videos.keys())
    this.known.ready = new Set([...videos.values()].filter(({ status }) => status === 'ready').map(({ id }) => id))
    this.known.otps = this.known.otps.filter(({ videoId }) => videos.has(videoId))
    this.known.playing = this.known.playing.filter(({ videoId }) => videos.has(videoId)).slice(-50)
    for (const videoId of this.known.credentials.keys())
      if (videos.get(videoId)?.status !== 'PRE-Upload') this.known.credentials.delete(videoId)
    this.known.sent.clear()
    for (const [videoId, arriving] of this.known.taken) this.known.arriving.set(videoId, arriving)
    this.known.taken.clear()
    for (const videoId of this.known.arriving.keys())
      if (videos.get(videoId)?.status !== 'PRE-Upload') this.known.arriving.delete(videoId)
  }
}

/** Text, so that no demuxer takes it for anything; each is another. */
export function noVideo(sizeBytes: number): Buffer<ArrayBuffer> {
  const text = Buffer.alloc(sizeBytes, 'This is no video. ')
  text.write(randomBytes(16).toString('hex'))
  return text
}

/** The same video as a file of its own: a `free` box that no player reads follows it. */
export function uniqueVideo(video: Buffer): Buffer<ArrayBuffer> {
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
