import { pino } from 'pino'
import { createAccount } from '../../src/accounts/account.ts'
import { createAuthenticate } from '../../src/accounts/api-key.ts'
import { insertVideo } from '../../src/catalogue/video-store.ts'
import { newContentKey, wrapContentKey } from '../../src/crypto/content-key.ts'
import { parseMasterKey } from '../../src/crypto/master-key.ts'
import { newId } from '../../src/crypto/secret.ts'
import type { Database, Db } from '../../src/db/database.ts'
import { insertGeneration } from '../../src/encode/generation-store.ts'
import { type AudioTrackPlan, gridFor, type Plan } from '../../src/encode/plan.ts'
import { createOutboundPolicy } from '../../src/outbound/policy.ts'
import { createKeyPacing } from '../../src/playback/keys/key-pacing.ts'
import { createMediaDelivery } from '../../src/playback/media/delivery.ts'
import type { MediaOrigin } from '../../src/playback/media/media-path.ts'
import { createPlayableVideos, type PlayableVideo } from '../../src/playback/media/playable-video.ts'
import { savePlayback } from '../../src/playback/open.ts'
import { issueOtp, type OtpRequest } from '../../src/playback/otp.ts'
import type { PlaybackDeps } from '../../src/playback/playback-deps.ts'
import { redeem } from '../../src/playback/redeem.ts'
import { PlaybackRefusal } from '../../src/playback/refusal.ts'
import { type Beat, recordBeat, recordLeave, releaseKey } from '../../src/playback/serve.ts'
import { admitRequest } from '../../src/playback/sessions/admit-request.ts'
import type { LiveSession } from '../../src/playback/sessions/live-session.ts'
import { createNonces, type Operation, readProof } from '../../src/playback/sessions/proof.ts'
import { openServerKeys } from '../../src/playback/sessions/server-key.ts'
import { createSessionMemory, followEnds } from '../../src/playback/sessions/session-memory.ts'
import { createSessionRefusals } from '../../src/playback/sessions/session-refusals.ts'
import { endSessionsOfVideos } from '../../src/playback/sessions/session-store.ts'
import { ALONE } from '../../src/playback/shared/sharing.ts'
import { createSuspicions } from '../../src/playback/suspicion/suspicion.ts'
import { createTickets } from '../../src/playback/ticket.ts'
import { onlyServer } from '../../src/servers/servers.ts'
import { createSignals } from '../../src/signals/signals.ts'
import { createViewQualities } from '../../src/view-quality/view-quality.ts'
import { createViewings } from '../../src/viewers/saved-viewings.ts'
import { openOwnDatabase } from '../db/database.ts'
import { createViewer, type Viewer } from '../viewer.ts'
import { stretchTrack } from './stretched-video.ts'

const STARTED_AT_S = 1_800_000_000
/** Addresses for documentation, which are nowhere, put into countries. */
const COUNTRIES: Record<string, string> = {
  '192.0.2.1': 'DE',
  '198.51.100.1': 'FR',
  '203.0.113.1': 'CH',
  '2001:db8::1': 'DE',
  '2001:db8:1::1': 'DE',
}

/** Where a viewer asks from: the address, the page's ticket, the pages around it. */
type From = { address: string; ticket: string; ancestors: string[] }
const AT_HOME: From = { address: '192.0.2.1', ticket: '', ancestors: [] }

/**
 * Playback without HTTP and ffmpeg, on a database of its own and a clock that the test moves: what takes hours, in milliseconds.
 * There is one ready video, without bytes.
 */
export async function openBarePlayback({
  durationS = 60,
  mediaOrigin,
  database,
}: {
  durationS?: number
  mediaOrigin?: MediaOrigin
  database?: Pick<Database, 'db' | 'write'>
} = {}) {
  const sent: { address: string; sentBytes: number }[] = []
  const { db, write } = database ?? (await openOwnDatabase())
  const clock = { nowS: STARTED_AT_S, nowMs: 0 }
  const nowS = () => Math.floor(clock.nowS)
  const countries = { find: async (address: string) => COUNTRIES[address] }
  const masterKey = parseMasterKey(Buffer.alloc(32, 1))
  const noWatermarkImages = { request() {}, find: async () => undefined } // its watermarks are texts
  const serverKeys = await openServerKeys({ db, write, masterKey, nowS })
  const newMemory = (): PlaybackDeps => ({
    db,
    write,
    signals: createSignals(write),
    nowS,
    preciseNowS: () => clock.nowS,
    monotonicMs: () => clock.nowMs,
    nonces: createNonces(masterKey, nowS),
    serverKeys,
    tickets: createTickets(masterKey, nowS),
    videos: createPlayableVideos(db, masterKey),
    keyPacing: createKeyPacing({ db, write, nowS: () => clock.nowS }),
    suspicions: createSuspicions({ write, nowS: () => clock.nowS, countries }),
    sessionRefusals: createSessionRefusals({ write, nowS }),
    viewings: createViewings({ db, write, nowS, onTenth: async () => {} }),
    viewQualities: createViewQualities({ db, write, nowS, wallNowS: nowS, findCountry: countries.find }),
    sessions: createSessionMemory({ write, nowS }),
    mediaSecrets: () => ['secret'],
    delivery: createMediaDelivery({ db, nowS, mediaSecrets: () => ['secret'], mediaOrigin, bucket: undefined }),
    captions: { find: async () => [], open: async () => undefined },
    openMainPoster: async () => undefined,
    storyboards: { has: async () => false, describe: async () => undefined, open: async () => undefined },
    watermarkImages: noWatermarkImages,
    countries,
    isRateLimited: false,
    recordView() {},
    recordAddress() {},
    sharing: ALONE,
    recordSentBytes: (_videoId, address, sentBytes) => void sent.push({ address, sentBytes }),
    log: pino({ level: 'silent' }),
  })
  /** A server: with a memory and signals of its own. */
  function newDeps(): PlaybackDeps {
    const memory = newMemory()
    followEnds(memory.signals, memory)
    return memory
  }
  let deps = newDeps()

  const { accountId, apiKey } = await createAccount({ db, write, nowS }, 'owner', { mayUpload: true, mayImport: true })
  const { apiKeyId } = await createAuthenticate({ db, signals: deps.signals, servers: onlyServer('one', 'one'), nowS })(apiKey)

  async function addVideo(): Promise<string> {
    const id = newId()
    await write(async (tx) => {
      await insertVideo(tx, accountId, { id, title: 'A video', uploadTimeS: nowS() })
      await insertBareGeneration(tx, id, 1)
      await tx.updateTable('video').set({ status: 'ready' }).where('id', '=', id).execute()
    })
    return id
  }

  const insertBareGeneration = (tx: Db, id: string, generation: number) =>
    insertGeneration(tx, {
      ...{ videoId: id, generation, plan: planOf(durationS), encoder: '', createdAtS: nowS() },
      wrappedContentKey: wrapContentKey(masterKey, id, generation, newContentKey()),
    })

  /** Another generation of the first video plays from now on, and its sessions end: what a finished re-encryption does. */
  async function playNextGeneration(generation: number): Promise<void> {
    await write(async (tx) => {
      await insertBareGeneration(tx, videoId, generation)
      await tx.updateTable('video').set({ generation }).where('id', '=', videoId).execute()
      await endSessionsOfVideos(tx, [videoId], nowS(), 'video-replaced')
    })
    await deps.signals.send('session-ended', { videoIds: [videoId], why: 'video-replaced' })
  }
  const videoId = await addVideo()

  const newOtp = (
    ttlS = 3600,
    options: Partial<Pick<OtpRequest, 'videoId' | 'userId' | 'streamLimit' | 'rules' | 'apiKeyId'>> = {},
  ) =>
    issueOtp(
      { write, nowS, outbound: createOutboundPolicy([]), watermarkImages: noWatermarkImages },
      {
        accountId,
        apiKeyId,
        videoId,
        ttlS,
        watermarks: [],
        ...options,
      },
    )

  async function redeemBy(viewer: Viewer, otp: string, from: Partial<From> = {}, server = deps): Promise<LiveSession> {
    const { address, ticket, ancestors } = { ...AT_HOME, ...from }
    const body = Buffer.from(`{"otp":"${otp}"}`)
    Object.assign(viewer.state, serverKeys.current)
    const proof = readProof(viewer.proof({ operation: 'redeem', body: body.toString(), nonce: server.nonces.current() }))
    const publicKey = Buffer.from(viewer.publicKeyText(), 'base64url')
    const { serverKeyId } = viewer.state
    const request = { otp, publicKey, serverKeyId, ticket, ancestors, support: {}, body }
    const session = await redeem(server, request, proof, { address, userAgent: '' })
    viewer.state.session = session.row.id
    return session
  }

  /** A viewer who has just redeemed. */
  async function newPlayingViewer(options: Parameters<typeof newOtp>[1] = {}): Promise<Viewer> {
    const viewer = createViewer('http://viewer.invalid')
    await redeemBy(viewer, await newOtp(3600, options))
    return viewer
  }

  /** A request of the viewer's page with a true and fresh proof. */
  async function ask(
    viewer: Viewer,
    operation: Operation = 'beat',
    nonce = deps.nonces.current(),
    { address = AT_HOME.address, isFlooding = false } = {},
  ): Promise<LiveSession> {
    const proof = readProof(viewer.proof({ operation, session: viewer.state.session, nonce }))
    const signed = { operation, argument: '', body: Buffer.alloc(0) }
    return admitRequest(deps, { sessionId: viewer.state.session, proof, signed, visit: { address, userAgent: '' }, isFlooding })
  }

  return {
    db,
    write,
    nowS,
    preciseNowS: () => clock.nowS,
    addVideo,
    playNextGeneration,
    get deps() {
      return deps
    },
    videoId,
    newOtp,
    newBrowser: () => createViewer('http://viewer.invalid'),
    redeemBy,
    newPlayingViewer,
    ask,
    passS(seconds: number) {
      clock.nowS += seconds
      clock.nowMs += 1000 * seconds
    },
    beat: async (viewer: Viewer, state: Beat['state'] = 'playing', address = AT_HOME.address) =>
      recordBeat(deps, await ask(viewer, 'beat', undefined, { address }), { state, positionS: 1, rate: 1 }),
    /** @returns undefined, or the refusal that says when to ask again */
    async key(viewer: Viewer, window: number, address = AT_HOME.address): Promise<PlaybackRefusal | undefined> {
      try {
        await releaseKey(deps, await ask(viewer, 'key', undefined, { address }), window)
        return undefined
      } catch (error) {
        if (error instanceof PlaybackRefusal && error.code === 'key-pace') return error
        throw error
      }
    },
    leave: async (viewer: Viewer) => recordLeave(deps, await ask(viewer, 'leave')),
    async save() {
      await savePlayback(deps)
    },
    /** Another server on the same database, with a memory of its own. */
    openServer: newDeps,
    /** Forgets what was in memory and makes nonces of another start: what a kill leaves. */
    crash() {
      deps = newDeps()
    },
    rowOf: (viewer: Viewer) =>
      db.selectFrom('playbackSession').selectAll().where('id', '=', viewer.state.session).executeTakeFirst(),
  }
}

/** What pacing needs of such a video; it has no keys. */
export function videoOf(videoId: string, durationS: number, generation = 1): PlayableVideo {
  const plan = planOf(durationS)
  const none = () => Buffer.alloc(0)
  const keys = { windowKey: none, ivKey: Buffer.alloc(16), repairsOf: () => 0 }
  return { videoId, generation, sourceNumber: 1, timelineStartS: 0, plan, grid: gridFor(plan), ...keys }
}

/** A video of one rendition in segments of 4 s, with three audio tracks. */
export function planOf(durationS: number): Plan {
  const rendition = { id: 1, widthPx: 640, heightPx: 360, maxBitrateBps: 800_000, level: 30 }
  const grid = { rateNum: 25, rateDen: 1, timescale: 12_800, gopFrames: 100, interlaced: false }
  const newAudioTrack = (renditionId: number): AudioTrackPlan =>
    stretchTrack({ renditionId, bitrateBps: 128_000, frameCount: 0 }, durationS)
  return {
    videoTrack: { ...grid, frameCount: 25 * durationS, aspectRatio: 16 / 9, renditions: [rendition] },
    audioTrack: newAudioTrack(2),
    otherAudioTracks: [newAudioTrack(3), newAudioTrack(4)],
    durationS,
    isSeekable: true,
  }
}

/** How a request ended: `allowed`, or the refusal with its reason. */
export async function outcomeOf(request: Promise<unknown>): Promise<string> {
  try {
    await request
    return 'allowed'
  } catch (error) {
    if (!(error instanceof PlaybackRefusal)) throw error
    return [error.code, error.details.why].filter(Boolean).join(': ')
  }
}
