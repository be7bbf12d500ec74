import { pino } from 'pino'
import { createAccount } from '../../src/accounts/account.ts'
import { createAuthenticate } from '../../src/accounts/api-key.ts'
import { insertVideo } from '../../src/catalogue/video-store.ts'
import { parseMasterKey } from '../../src/crypto/master-key.ts'
import { newId } from '../../src/crypto/secret.ts'
import { createOutboundPolicy } from '../../src/outbound/policy.ts'
import { issueOtp, type OtpRequest } from '../../src/playback/otp.ts'
import { createPlayableVideos } from '../../src/playback/playable-video.ts'
import { createNonces, type Operation, readProof } from '../../src/playback/proof.ts'
import { redeem } from '../../src/playback/redeem.ts'
import { PlaybackRefusal } from '../../src/playback/refusal.ts'
import { type Beat, recordBeat, recordLeave } from '../../src/playback/serve.ts'
import { openServerKeys } from '../../src/playback/server-key.ts'
import { admitRequest, type LiveSession, type PlaybackDeps, saveSessions } from '../../src/playback/session.ts'
import { createTickets } from '../../src/playback/ticket.ts'
import { openOwnDatabase } from '../db/database.ts'
import { createViewer, type Viewer } from '../viewer.ts'

const STARTED_AT_S = 1_800_000_000
/** Addresses for documentation, which are nowhere, put into countries. */
const COUNTRIES: Record<string, string> = { '192.0.2.1': 'DE', '198.51.100.1': 'FR', '2001:db8::1': 'DE' }

/** Where a viewer asks from: the address, the page's ticket, the pages around it. */
type From = { address: string; ticket: string; ancestors: string[] }
const AT_HOME: From = { address: '192.0.2.1', ticket: '', ancestors: [] }

/**
 * Playback without HTTP and ffmpeg, on a database of its own and a clock that the test moves: what takes hours, in milliseconds.
 * There is one ready video, without bytes.
 */
export async function openBarePlayback({ durationS = 60 } = {}) {
  const { db, write } = await openOwnDatabase()
  const clock = { nowS: STARTED_AT_S, nowMs: 0 }
  const nowS = () => clock.nowS
  const masterKey = parseMasterKey(Buffer.alloc(32, 1))
  const noWatermarkImages = { request() {}, find: async () => undefined } // its watermarks are texts
  const serverKeys = await openServerKeys({ db, write, masterKey, nowS })
  const newDeps = (): PlaybackDeps => ({
    db,
    write,
    nowS,
    monotonicMs: () => clock.nowMs,
    nonces: createNonces(masterKey, nowS),
    serverKeys,
    tickets: createTickets(masterKey, nowS),
    videos: createPlayableVideos(db, masterKey),
    sessions: new Map(),
    mediaSecret: 'secret',
    captions: { find: async () => [], open: async () => undefined },
    openMainPoster: async () => undefined,
    watermarkImages: noWatermarkImages,
    countries: { find: async (address) => COUNTRIES[address] },
    isRateLimited: false,
    recordView() {},
    log: pino({ level: 'silent' }),
  })
  let deps = newDeps()

  const { accountId, apiKey } = await createAccount({ db, write, nowS }, 'owner', { mayUpload: true, mayImport: true })
  const { apiKeyId } = await createAuthenticate({ db, write, nowS })(apiKey)
  const videoId = newId()
  await write(async (tx) => {
    await insertVideo(tx, accountId, { id: videoId, title: 'A video', uploadTimeS: clock.nowS })
    await tx.updateTable('video').set({ status: 'ready', generation: 1, durationS }).where('id', '=', videoId).execute()
  })

  const newOtp = (ttlS = 3600, options: Partial<Pick<OtpRequest, 'userId' | 'streamLimit' | 'rules' | 'apiKeyId'>> = {}) =>
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

  async function redeemBy(viewer: Viewer, otp: string, from: Partial<From> = {}): Promise<LiveSession> {
    const { address, ticket, ancestors } = { ...AT_HOME, ...from }
    const body = Buffer.from(`{"otp":"${otp}"}`)
    Object.assign(viewer.state, serverKeys.current)
    const proof = readProof(viewer.proof({ operation: 'redeem', body: body.toString(), nonce: deps.nonces.current() }))
    const publicKey = Buffer.from(viewer.publicKeyText(), 'base64url')
    const { serverKeyId } = viewer.state
    const request = { otp, publicKey, serverKeyId, ticket, ancestors, body }
    const session = await redeem(deps, request, proof, { address, userAgent: '' })
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
    get deps() {
      return deps
    },
    videoId,
    newOtp,
    redeemBy,
    newPlayingViewer,
    ask,
    passS(seconds: number) {
      clock.nowS += seconds
      clock.nowMs += 1000 * seconds
    },
    beat: async (viewer: Viewer, state: Beat['state'] = 'playing') =>
      recordBeat(deps, await ask(viewer), { state, positionS: 1 }),
    leave: async (viewer: Viewer) => recordLeave(deps, await ask(viewer, 'leave')),
    save: () => saveSessions(deps),
    /** Forgets what was in memory and makes nonces of another start: what a kill leaves. */
    crash() {
      deps = newDeps()
    },
    rowOf: (viewer: Viewer) =>
      db.selectFrom('playbackSession').selectAll().where('id', '=', viewer.state.session).executeTakeFirst(),
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
