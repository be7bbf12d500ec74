import { randomBytes } from 'node:crypto'
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { setTimeout as pause } from 'node:timers/promises'
import { Deviation, expectAnswer, type Need } from './check.ts'
import { type Answer, createPacedSend, multipart, type Parts, sendAtOnce } from './http.ts'
import { createOutside } from './public-host.ts'
import { isRecord } from './shape.ts'
import { VIDEO } from './test-video.ts'

/** What the suite was given: where the installation is, and what may be used there. */
export type Given = {
  base: string
  key: string
  otherKey?: string
  viewerKey?: string
  offKey?: string
  listen?: { host: string; port: number }
  exceed?: boolean
}

type Sending = {
  /** Undefined: the key that was given; null: no header. */
  key?: string | null
  headers?: readonly (readonly [string, string])[]
  /** At most one of these. */
  json?: unknown
  form?: Record<string, string> | string
  parts?: Parts
  body?: string
}

export type Credentials = { videoId: string; uploadLink: string; fields: Record<string, string> }

export type Installation = ReturnType<typeof openInstallation>

/** The longest page of a list: of v2, and of an account that has it raised. */
export const MAX_PAGE = 100

/** What is sent where no video is needed: the server encodes nothing. */
export const LETTER = Buffer.from('This is a letter, not a video.')
/** Asks for the answer 201. */
const CREATED: Parts = [['success_action_status', '201']]

/** So long a video of two seconds may take. */
const PATIENCE_MS = 120_000

/** The installation under test, as its clients see it, and what the suite makes there. */
export function openInstallation(given: Given, onWait: (waitS: number, budget: string) => void) {
  const base = given.base.replace(/\/+$/, '')
  const agent = base.startsWith('https:') ? new HttpsAgent({ keepAlive: true }) : new HttpAgent({ keepAlive: true })
  const send = createPacedSend(agent, onWait)
  // Titles with this mark are ours: searches for it find nothing else, whatever the account holds.
  const mark = `conformance-${randomBytes(4).toString('hex')}`
  const undo: (() => Promise<unknown>)[] = []
  let titles = 0

  const has: Record<Need, boolean> = {
    'other-key': given.otherKey !== undefined,
    'viewer-key': given.viewerKey !== undefined,
    'off-key': given.offKey !== undefined,
    listen: given.listen !== undefined,
    exceed: given.exceed === true,
  }

  /** A call to the current interface. */
  function api(method: string, path: string, sending: Sending = {}): Promise<Answer> {
    const key = sending.key === undefined ? given.key : sending.key
    const authorization: [string, string][] = key === null ? [] : [['Authorization', `Apisecret ${key}`]]
    return send({ method, url: `${base}/api${path}`, ...written(sending, [...authorization, ['Accept', 'application/json']]) })
  }

  /** A call to the earlier interface; the key goes into the form. */
  function v2(path: string, fields: Record<string, string> = {}, key: string | null = given.key): Promise<Answer> {
    const form = { ...(key === null ? {} : { clientSecretKey: key }), ...fields }
    return send({ method: 'POST', url: `${base}/v2${path}`, ...written({ form }, []) })
  }

  const newTitle = () => `${mark} ${++titles}`

  /** A video that nobody has sent yet. */
  async function credentials(title = newTitle()): Promise<Credentials> {
    const answer = await api('PUT', `/videos?title=${encodeURIComponent(title)}`)
    expectAnswer(answer, { status: 200 })
    const { clientPayload, videoId } = answer.body as { clientPayload: Record<string, string>; videoId: string }
    removeVideo(videoId)
    const { uploadLink = '', ...fields } = clientPayload
    return { videoId, uploadLink, fields }
  }

  function removeVideo(videoId: string, key?: string): void {
    undo.push(() => api('DELETE', `/videos?videos=${videoId}`, { key }))
  }

  /**
   * Posts an upload's form. Forms count against a budget of their own and their answers do not tell it; since each takes credentials
   * first, whose answers do, they are never more than those.
   */
  function upload({ uploadLink, fields }: Credentials, more: Parts = CREATED, bytes: Buffer = LETTER) {
    const file = { fileName: 'bars.mp4', type: 'video/mp4', bytes }
    return send({
      method: 'POST',
      url: uploadLink,
      ...written({ parts: [...Object.entries(fields), ...more, ['file', file]] }, []),
    })
  }

  async function video(id: string): Promise<Record<string, unknown>> {
    const answer = await api('GET', `/videos/${id}`)
    if (answer.status !== 200 || !isRecord(answer.body)) throw new Deviation(`GET /videos/${id}: came ${answer.status}`)
    return answer.body
  }

  async function sentVideo(): Promise<string> {
    const issued = await credentials()
    expectAnswer(await upload(issued, CREATED, VIDEO), { status: 201 })
    return issued.videoId
  }

  /** Asks until `isDone`; what it asks counts against the budget of reads, so it asks rarely. */
  async function until<Found>(what: string, ask: () => Promise<Found>, isDone: (found: Found) => boolean): Promise<Found> {
    const endsAtMs = performance.now() + PATIENCE_MS
    for (let waitMs = 50; performance.now() < endsAtMs; waitMs = Math.min(1_000, waitMs * 1.5)) {
      const found = await ask()
      if (isDone(found)) return found
      await pause(waitMs)
    }
    throw new Deviation(`${what}: not within ${PATIENCE_MS / 1000} s`)
  }

  return {
    base,
    mark,
    key: given.key,
    otherKey: given.otherKey ?? '',
    viewerKey: given.viewerKey ?? '',
    offKey: given.offKey ?? '',
    has: (need: Need) => has[need],
    /** Any call, as it is given. */
    send,
    api,
    v2,
    newTitle,
    credentials,
    removeVideo,
    upload,
    video,
    sentVideo,
    until,
    /** One video that plays, shared by all checks: none of them may change it. */
    readyVideo: once(async () => {
      const id = await sentVideo()
      await until(
        'a video that plays',
        () => video(id),
        ({ status }) => status === 'ready',
      )
      return id
    }),
    /** One video whose bytes are no video, judged as such. */
    letter: once(async () => {
      const issued = await credentials()
      expectAnswer(await upload(issued), { status: 201 })
      await until(
        'status Not a media file',
        () => video(issued.videoId),
        ({ status }) => status === 'Not a media file',
      )
      return issued.videoId
    }),
    /** One video without a source, shared by all checks: none of them may change it. */
    emptyVideo: once(async () => (await credentials()).videoId),
    /** More videos than any page holds, whose titles begin with this; shared by all checks: none of them may change it. */
    titleOfManyVideos: once(async () => {
      const title = newTitle()
      for (let n = 0; n < MAX_PAGE + 1; n++) await credentials(`${title} n${n}`)
      return title
    }),
    /** What the server asks for and calls: needs `listen`. */
    outside: once(async () => {
      if (!given.listen) throw new Error('a check that uses the outside needs "listen"')
      const outside = await createOutside(given.listen)
      undo.push(() => outside.close())
      return outside
    }),
    /** Asks for uploads without a title, which are refused and count, until the budget is spent; far from what brings a ban. */
    async exceedUploads(): Promise<Answer> {
      const headers: [string, string][] = [['Authorization', `Apisecret ${given.key}`]]
      for (;;) {
        const answer = await sendAtOnce(agent, { method: 'PUT', url: `${base}/api/videos`, headers })
        if (answer.status !== 400 || answer.headers.ratelimit === undefined) return answer
      }
    },
    /** Has this done at the end, whatever becomes of the checks. */
    later: (act: () => Promise<unknown>) => void undo.push(act),
    /** Removes what the suite has made, the latest first. */
    async cleanUp() {
      for (const act of undo.reverse()) await act()
      agent.destroy()
    },
  }
}

/** Headers and body of a call. */
function written({ headers = [], json, form, parts, body }: Sending, first: readonly (readonly [string, string])[]) {
  if (json !== undefined) return { headers: [...first, ...typed('application/json'), ...headers], body: JSON.stringify(json) }
  if (form !== undefined)
    return {
      headers: [...first, ...typed('application/x-www-form-urlencoded'), ...headers],
      body: typeof form === 'string' ? form : new URLSearchParams(form).toString(),
    }
  if (parts === undefined) return { headers: [...first, ...headers], body }
  const written = multipart(parts)
  return { headers: [...first, ...typed(written.type), ...headers], body: written.body }
}

function typed(type: string): [string, string][] {
  return [['Content-Type', type]]
}

function once<Value>(make: () => Promise<Value>): () => Promise<Value> {
  let made: Promise<Value> | undefined
  return () => (made ??= make())
}
