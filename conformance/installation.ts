import { randomBytes } from 'node:crypto'
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { setTimeout as pause } from 'node:timers/promises'
import { type Client, createClient, encodeCall } from './client.ts'
import { Deviation, expectAnswer } from './expect.ts'
import { type Answer, createPacedSend, type Parts, type Send, sendUnpaced } from './http.ts'
import { createPublicHost } from './public-host.ts'
import type { Requirement } from './requirements.ts'
import { isRecord } from './shape.ts'
import { VIDEO } from './test-video.ts'

/** The installation to test, and what may be used there. */
export type Options = {
  base: string
  key: string
  otherKey?: string
  /** API secrets by the one permission that each holds. */
  permissionKeys?: ReadonlyMap<string, string>
  offKey?: string
  listen?: { host: string; port: number }
  exceed?: boolean
}

export type Credentials = { videoId: string; uploadLink: string; fields: Record<string, string> }

export type Installation = ReturnType<typeof openInstallation>

/** The longest page of a list: in v2, and in the current interface for an account whose limit was raised. */
export const MAX_PAGE = 100

/** Uploaded where no playable video is needed, so that the server encodes nothing. */
export const NOT_MEDIA = Buffer.from('This is a letter, not a video.')
/** Asks for the status 201. */
const ASK_FOR_201: Parts = [['success_action_status', '201']]

/** How long encoding a video of two seconds may take. */
const MAX_WAIT_MS = 120_000

/** A client of the installation under test, and the videos, folders and webhooks that the suite makes there. */
export function openInstallation(options: Options, onWait: (waitS: number, budget: string) => void) {
  const base = options.base.replace(/\/+$/, '')
  const agent = base.startsWith('https:') ? new HttpsAgent({ keepAlive: true }) : new HttpAgent({ keepAlive: true })
  const send = createPacedSend(agent, onWait)
  // Begins every title that the suite makes, so that searches find nothing else, whatever the account holds.
  const titlePrefix = `conformance-${randomBytes(4).toString('hex')}`
  const cleanups: (() => Promise<unknown>)[] = []
  let titles = 0

  const has: Record<Requirement, boolean> = {
    'other-key': options.otherKey !== undefined,
    'permission-keys': options.permissionKeys !== undefined,
    'off-key': options.offKey !== undefined,
    listen: options.listen !== undefined,
    exceed: options.exceed === true,
  }

  const { api, v2 } = createClient(send, base, options.key)
  const newTitle = () => `${titlePrefix} ${++titles}`

  const videos = createVideos(send, api, newTitle, (cleanup) => cleanups.push(cleanup))
  return {
    base,
    titlePrefix,
    key: options.key,
    otherKey: options.otherKey ?? '',
    permissionKeys: options.permissionKeys ?? new Map<string, string>(),
    viewerKey: options.permissionKeys?.get('viewer') ?? '',
    offKey: options.offKey ?? '',
    has: (need: Requirement) => has[need],
    /** Sends any call. */
    send,
    api,
    v2,
    newTitle,
    until,
    ...videos,
    ...createSharedVideos(videos, newTitle),
    /** A host from which the server imports, and which receives its webhooks: needs `listen`. */
    publicHost: memoize(async () => {
      if (!options.listen) throw new Error('a check that uses the public host needs --listen')
      const host = await createPublicHost(options.listen)
      cleanups.push(() => host.close())
      return host
    }),
    /** Asks for credentials without a title, which are refused but count, until the limit is reached; far from what causes a ban. */
    async exceedUploads(): Promise<Answer> {
      const headers: [string, string][] = [['Authorization', `Apisecret ${options.key}`]]
      for (;;) {
        const answer = await sendUnpaced(agent, { method: 'PUT', url: `${base}/api/videos`, headers })
        if (answer.status !== 400 || answer.headers.ratelimit === undefined) return answer
      }
    },
    /** Runs this at the end, even when checks fail. */
    atEnd: (cleanup: () => Promise<unknown>) => void cleanups.push(cleanup),
    /** Removes what the suite has made, the newest first. */
    async cleanUp() {
      for (const cleanup of cleanups.reverse()) await cleanup()
      agent.destroy()
    },
  }
}

/** Videos that one check needs. */
function createVideos(send: Send, api: Client['api'], newTitle: () => string, atEnd: (cleanup: () => Promise<unknown>) => void) {
  /** A new video without a source, and its upload credentials. */
  async function credentials(title = newTitle()): Promise<Credentials> {
    const answer = await api('PUT', `/videos?title=${encodeURIComponent(title)}`)
    expectAnswer(answer, { status: 200 })
    const { clientPayload, videoId } = answer.body as { clientPayload: Record<string, string>; videoId: string }
    removeVideo(videoId)
    const { uploadLink = '', ...fields } = clientPayload
    return { videoId, uploadLink, fields }
  }

  function removeVideo(videoId: string, key?: string): void {
    atEnd(() => api('DELETE', `/videos?videos=${videoId}`, { key }))
  }

  /**
   * Posts an upload form. Forms have a rate limit of their own, which their responses do not report; there are never more forms than
   * credentials, whose responses do.
   */
  function upload({ uploadLink, fields }: Credentials, more: Parts = ASK_FOR_201, bytes: Buffer = NOT_MEDIA) {
    const file = { fileName: 'bars.mp4', type: 'video/mp4', bytes }
    return send({
      method: 'POST',
      url: uploadLink,
      ...encodeCall({ parts: [...Object.entries(fields), ...more, ['file', file]] }),
    })
  }

  async function video(id: string): Promise<Record<string, unknown>> {
    const answer = await api('GET', `/videos/${id}`)
    if (answer.status !== 200 || !isRecord(answer.body)) throw new Deviation(`GET /videos/${id}: got ${answer.status}`)
    return answer.body
  }

  async function uploadedVideo(): Promise<string> {
    const issued = await credentials()
    expectAnswer(await upload(issued, ASK_FOR_201, VIDEO), { status: 201 })
    return issued.videoId
  }

  return { credentials, removeVideo, upload, video, uploadedVideo }
}

/** Videos that several checks share, made when the first check needs them. No check may change them. */
function createSharedVideos(
  { credentials, upload, video, uploadedVideo }: ReturnType<typeof createVideos>,
  newTitle: () => string,
) {
  return {
    /** A video that is ready. */
    sharedReadyVideo: memoize(async () => {
      const id = await uploadedVideo()
      await until(
        'a video that plays',
        () => video(id),
        ({ status }) => status === 'ready',
      )
      return id
    }),
    /** A video whose source is not a media file, after its status says so. */
    nonMediaVideo: memoize(async () => {
      const issued = await credentials()
      expectAnswer(await upload(issued), { status: 201 })
      await until(
        'status Not a media file',
        () => video(issued.videoId),
        ({ status }) => status === 'Not a media file',
      )
      return issued.videoId
    }),
    /** A video without a source. */
    sharedEmptyVideo: memoize(async () => (await credentials()).videoId),
    /** The beginning of the titles of 101 videos, more than any page holds. */
    titleOf101Videos: memoize(async () => {
      const title = newTitle()
      for (let n = 0; n < MAX_PAGE + 1; n++) await credentials(`${title} n${n}`)
      return title
    }),
  }
}

/** Polls until `isDone`, with growing pauses, since each poll counts as a read. */
async function until<Found>(what: string, ask: () => Promise<Found>, isDone: (found: Found) => boolean): Promise<Found> {
  const endsAtMs = performance.now() + MAX_WAIT_MS
  for (let waitMs = 50; performance.now() < endsAtMs; waitMs = Math.min(1_000, waitMs * 1.5)) {
    const found = await ask()
    if (isDone(found)) return found
    await pause(waitMs)
  }
  throw new Deviation(`${what}: did not happen within ${MAX_WAIT_MS / 1000} s`)
}

function memoize<Value>(make: () => Promise<Value>): () => Promise<Value> {
  let made: Promise<Value> | undefined
  return () => (made ??= make())
}
