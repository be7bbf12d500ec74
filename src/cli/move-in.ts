import { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { type Static, type TSchema, Type } from 'typebox'
import { Value } from 'typebox/value'
import type { Config } from '../config/config.ts'
import {
  MoveBegun,
  MoveCompletion,
  MovedVideo,
  MovedVideos,
  MoveOutcome,
  MoveProgress,
  type ServerCommandName,
} from '../control/server-commands.ts'
import { assertServerRuns } from '../control/socket.ts'
import { Failure, type FailureKind } from '../errors.ts'
import { limitBytes } from '../limit-bytes.ts'
import { openProgress, type ProgressView } from './progress-view.ts'
import { parseResult, runOnServer } from './run-command.ts'

// Copies what another server of this API has: its rows by this command, its files by the running server, which fetches them as it does imports.

type MoveOptions = { from: string; key: string; account?: string; pace: number; json?: true }

/** Of an answer. */
const MAX_ANSWER_BYTES = 10 * 2 ** 20
/** Originals that are on their way: their addresses live for an hour, so few of them wait. */
const MAX_ARRIVING = 4
const POLL_INTERVAL_MS = 300
const REQUEST_TIMEOUT_MS = 60_000
/** Of a request that the other server cannot answer now, once it has answered another. */
const MAX_ATTEMPTS = 10
const MAX_RETRY_AFTER_S = 120

const OtherVideo = Type.Object({
  id: Type.String({ pattern: '^[0-9a-f]{32}$' }),
  title: Type.String(),
  description: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  upload_time: Type.Number(),
  public: Type.Optional(Type.Number()),
  folderId: Type.Optional(Type.String()),
  tags: Type.Optional(Type.Array(Type.String())),
  externalId: Type.Optional(Type.String()),
  metadata: Type.Optional(Type.Record(Type.String(), Type.String())),
})
type OtherVideo = Static<typeof OtherVideo>
const OtherVideos = Type.Object({ count: Type.Number(), rows: Type.Array(OtherVideo) })
type OtherVideos = Static<typeof OtherVideos>
const OtherTrim = Type.Object({
  trim: Type.Optional(Type.Object({ startS: Type.Number(), endS: Type.Number() })),
})
const OtherFiles = Type.Array(
  Type.Object({
    id: Type.Number(),
    name: Type.String(),
    type: Type.String(),
    enabled: Type.Number(),
    width: Type.Optional(Type.Number()),
    lang: Type.Optional(Type.String()),
  }),
)
type OtherFile = Static<typeof OtherFiles>[number]
const OtherDefaults = Type.Object({}, { additionalProperties: true })
const OtherFolders = Type.Object({ folderList: Type.Array(Type.Object({ id: Type.String(), name: Type.String() })) })
const OtherChapters = Type.Object({
  language: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  chapters: Type.Array(Type.Object({ startS: Type.Number(), title: Type.String() })),
})
const OtherAudio = Type.Object({
  tracks: Type.Array(
    Type.Object({
      name: Type.String(),
      language: Type.Optional(Type.String()),
      default: Type.Boolean(),
      added: Type.Boolean(),
      startS: Type.Optional(Type.Number()),
      fileId: Type.Optional(Type.Number()),
    }),
  ),
})
const Redirect = Type.Object({ redirect: Type.String() })
const Message = Type.Object({ message: Type.String() })
const Nothing = Type.Object({})

/** `video`: its id on the other server; empty for what belongs to the account. */
type Problem = { video: string; title: string; problem: string }
type Send = <S extends TSchema>(name: ServerCommandName, args: unknown, reply: S) => Promise<Static<S>>
type Run = {
  from: OtherServer
  target: { accountId: string; origin: string }
  send: Send
  signal: AbortSignal
  view: ProgressView
}

/**
 * Copies what is missing here from another server to the running one, the oldest video first, and prints what could not come. Run again
 * after an interruption it continues: what is here is not made twice.
 * @throws Failure when the other server cannot be read at all, and in the end when something could not come
 */
export async function moveIn(config: Config, options: MoveOptions): Promise<void> {
  const origin = readOrigin(options.from)
  assertServerRuns(config)
  const send: Send = async (name, args, reply) => parseResult(reply, await runOnServer(config, name, args))
  const { accountId } = await send('move begin', { account: options.account, origin }, MoveBegun)
  using progress = openProgress(options.json === true)
  const { view, signal } = progress
  const from = openOtherServer({ origin, key: options.key, pace: options.pace, signal })
  const run = { from, target: { accountId, origin }, send, signal, view }
  try {
    const report = await moveAll(run)
    view.clear()
    process.stdout.write(options.json ? `${JSON.stringify(report)}\n` : describe(report))
    if (report.problems.length > 0)
      throw new Failure('conflict', 'Not everything could come. Correct what is named, and run this again.')
  } catch (error) {
    if (signal.aborted) throw new Failure('unavailable', 'Stopped. Run the same command again to continue.')
    throw error
  }
}

type Report = { videos: number; added: number; problems: Problem[] }

async function moveAll(run: Run): Promise<Report> {
  const { from, target, send, view } = run
  view.show(0, 'reading the list')
  const folders = await readFolderPaths(from)
  const videos = (await readVideos(from)).toReversed()
  const problems = await moveAccount(run, folders)
  const complete = new Set((await send('move list', target, MovedVideos)).filter((video) => video.isComplete).map(idThere))
  const incomplete: Incomplete[] = []
  let added = 0
  for (const [at, video] of videos.entries()) {
    if (complete.has(video.id)) continue
    view.show(at / videos.length, `copying, ${at + 1} of ${videos.length} videos`)
    await untilFewArrive(run, MAX_ARRIVING - 1)
    const moved = await moveOne(run, video, folders).catch(
      (error): Moved => ({ ...NOT_MOVED, problems: [messageOf(run, error)] }),
    )
    if (moved.isAdded) added += 1
    const { rest, problems: own } = moved
    if (rest) incomplete.push({ originId: video.id, title: video.title, hasFiles: own.length === 0, ...rest })
    problems.push(...moved.problems.map((problem) => ({ video: video.id, title: video.title, problem })))
  }
  view.show(1, 'waiting for the last originals')
  await untilFewArrive(run, 0)
  problems.push(...(await completeAll(run, incomplete)))
  const titles = new Map(videos.map(({ id, title }) => [id, title]))
  for (const { originId, problem } of await send('move list', target, MovedVideos)) {
    const title = titles.get(originId)
    if (problem !== null && title !== undefined) problems.push({ video: originId, title, problem })
  }
  return { videos: videos.length, added, problems }
}

/** What is made of the video here once it plays: names of audio tracks, tracks that were added there, and the part that plays there, in seconds of its file. */
type Rest = { videoId: string; names: AudioNames[]; audio: MovingAudio[]; trim?: { startS: number; endS: number } }
/** Of a track of the video's own file. */
type AudioNames = { name: string; language?: string; isDefault: boolean }
type MovingAudio = { fileId: number; fileName: string; language: string; name: string; isDefault: boolean; startS: number }
type Incomplete = Rest & { originId: string; title: string; hasFiles: boolean }

/** Waits for each until it plays here. Those of an interrupted run are completed by the next. @returns what could not be done */
async function completeAll({ from, send, target, signal, view }: Run, incomplete: readonly Incomplete[]): Promise<Problem[]> {
  const problems: Problem[] = []
  for (const [at, { originId, title, hasFiles, videoId, names, audio, trim }] of incomplete.entries()) {
    view.show(at / incomplete.length, `audio tracks and trimming, ${at + 1} of ${incomplete.length} videos, each once it plays`)
    const before = problems.length
    const untilDone = async (name: 'move audio names' | 'move audio' | 'move trim', ask: () => Promise<object>) => {
      for (;;) {
        const moving = { accountId: target.accountId, videoId, ...(await ask()) }
        const { isWaiting, problem } = await send(name, moving, MoveCompletion)
        if (problem !== null) problems.push({ video: originId, title, problem })
        if (!isWaiting) return
        await pause(POLL_INTERVAL_MS, undefined, { signal })
      }
    }
    if (names.length > 0) await untilDone('move audio names', async () => ({ tracks: names }))
    for (const { fileId, ...track } of audio) {
      const url = await addressOf(from, `/videos/${originId}`, { id: fileId })
      await untilDone('move audio', async () => ({ ...track, url }))
    }
    if (trim) await untilDone('move trim', async () => trim)
    if (hasFiles && problems.length === before) await send('move files done', { ...target, originId }, Nothing)
  }
  return problems
}

const idThere = ({ originId }: { originId: string }) => originId
const NOT_MOVED = { isAdded: false }

/** Of what only one video or file has. @throws the error, where all others would have it, too */
function messageOf({ signal }: Run, error: unknown): string {
  signal.throwIfAborted()
  if (error instanceof Failure && error.kind !== 'unauthenticated' && error.kind !== 'forbidden') return error.message
  throw error
}

/** Folders, also empty ones, and the defaults of OTPs. */
async function moveAccount({ from, target, send }: Run, folders: FolderPaths): Promise<Problem[]> {
  const otpDefaults = await from.find('/otp-defaults', OtherDefaults)
  const moving = { ...target, folders: [...folders.values()], otpDefaults: otpDefaults ?? {} }
  const { problem } = await send('move account', moving, MoveOutcome)
  return problem === null ? [] : [{ video: '', title: 'The defaults of OTPs', problem }]
}

async function untilFewArrive({ send, target, signal }: Run, most: number): Promise<void> {
  for (;;) {
    const { arriving } = await send('move progress', target, MoveProgress)
    if (arriving <= most) return
    await pause(POLL_INTERVAL_MS, undefined, { signal })
  }
}

type Moved = { isAdded: boolean; rest?: Rest; problems: string[] }

async function moveOne(run: Run, video: OtherVideo, folders: FolderPaths): Promise<Moved> {
  const { from, send, target } = run
  const there = `/videos/${video.id}`
  const files = await from.read(`${there}/files`, OtherFiles)
  const original = files.find(({ type }) => type === 'original')
  if (!original) return { ...NOT_MOVED, problems: ['It has no file there.'] }
  const moving = {
    ...{ ...target, originId: video.id, fileName: original.name, title: video.title },
    url: await addressOf(from, there, original),
    description: video.description ?? '',
    uploadTimeS: Math.min(Math.floor(video.upload_time), Math.floor(Date.now() / 1000)),
    public: video.public === 0 ? 0 : 1,
    folders: folders.get(video.folderId ?? '') ?? [],
    tags: video.tags ?? [],
    otpDefaults: (await from.find(`${there}/otp-defaults`, OtherDefaults)) ?? {},
    ...(video.externalId !== undefined && { externalId: video.externalId }),
    ...(video.metadata !== undefined && { metadata: video.metadata }),
  }
  const { videoId, state, hasFiles } = await send('move video', moving, MovedVideo)
  if (state === 'deleted' || hasFiles) return { ...NOT_MOVED, problems: [] }
  const { trim } = await from.read(there, OtherTrim)
  const problems = await moveFiles(run, { there, videoId, files, startS: trim?.startS ?? 0 })
  const { names, audio } = await readAudio(from, there, files)
  if (trim || names.length > 0 || audio.length > 0)
    return { isAdded: true, rest: { videoId, names, audio, ...(trim && { trim }) }, problems }
  if (problems.length === 0) await send('move files done', { ...target, originId: video.id }, Nothing)
  return { isAdded: true, problems }
}

async function readAudio(from: OtherServer, there: string, files: readonly OtherFile[]) {
  const { tracks = [] } = (await from.find(`${there}/audio`, OtherAudio)) ?? {}
  const audio = tracks.flatMap(({ fileId, name, language, default: isDefault, startS = 0 }): MovingAudio[] => {
    const file = files.find(({ id }) => id === fileId)
    if (!file || language === undefined) return []
    return [{ fileId: file.id, fileName: file.name, language, name, isDefault, startS }]
  })
  const own = tracks.filter(({ added }) => !added)
  const names = own.map(({ name, language, default: isDefault }) => ({ name, ...(language && { language }), isDefault }))
  return { names: own.length > 1 || own.some(isNamed) ? names : [], audio }
}

/** Of a track that is alone in its file, which has no language and is called by its place: whether its owner has given it another name. */
function isNamed({ name, language }: { name: string; language?: string }): boolean {
  return language !== undefined || !['sound', 'Track 1'].includes(name)
}

type MovingFiles = { there: string; videoId: string; files: readonly OtherFile[]; startS: number }

/**
 * Captions, chapters and the poster.
 * @param files.startS where the video begins in its original; the times of captions and chapters count from there
 * @returns what could not come
 */
async function moveFiles(run: Run, { there, videoId, files, startS }: MovingFiles): Promise<string[]> {
  const { from, send } = run
  const video = { accountId: run.target.accountId, videoId }
  const problems: string[] = []
  const attempt = async (what: string, action: () => Promise<unknown>) => {
    await action().catch((error) => problems.push(`${what}: ${messageOf(run, error)}`))
  }
  const sendAddress = async (name: 'move caption' | 'move poster', file: OtherFile, more: object) => {
    const moving = { ...video, ...more, url: await addressOf(from, there, file) }
    await from.patiently(() => send(name, moving, Nothing))
  }
  const shown = files.filter(({ enabled }) => enabled === 1)
  for (const caption of shown.filter(({ type }) => type === 'caption')) {
    const language = caption.lang ?? ''
    await attempt(`Captions ${language}`, () => sendAddress('move caption', caption, { language, startS }))
  }
  const [poster] = shown.filter(({ type }) => type === 'poster').toSorted((a, b) => (b.width ?? 0) - (a.width ?? 0))
  if (poster) await attempt('The poster', () => sendAddress('move poster', poster, {}))
  await attempt('Chapters', async () => {
    const { language = null, chapters = [] } = (await from.find(`${there}/chapters`, OtherChapters)) ?? {}
    const onTimeline = chapters.map((chapter) => ({ ...chapter, startS: startS + chapter.startS }))
    if (chapters.length > 0) await send('move chapters', { ...video, language, chapters: onTimeline }, Nothing)
  })
  return problems
}

async function addressOf(from: OtherServer, there: string, { id }: Pick<OtherFile, 'id'>): Promise<string> {
  return (await from.read(`${there}/files/${id}`, Redirect)).redirect
}

/** Newest first, each once, also when some are added meanwhile. */
async function readVideos(from: OtherServer): Promise<OtherVideo[]> {
  const videos = new Map<string, OtherVideo>()
  let query: string | undefined = '?limit=40'
  for (let number = 2; query !== undefined; number++) {
    const page: Page<OtherVideos> = await from.readPage(`/videos${query}`, OtherVideos)
    const { count, rows } = page.body
    for (const video of rows) videos.set(video.id, video)
    const isLast = rows.length === 0 || videos.size >= count
    query = page.next ?? (isLast ? undefined : `?limit=40&page=${number}`) // a proxy may remove the header
  }
  return [...videos.values()]
}

/** The names of each folder's parents and its own, by its id. */
type FolderPaths = ReadonlyMap<string, readonly string[]>

async function readFolderPaths(from: OtherServer): Promise<FolderPaths> {
  const paths = new Map<string, string[]>([['root', []]])
  for (const [id, path] of paths) {
    const { folderList } = await from.read(`/videos/folders/${id}`, OtherFolders)
    for (const folder of folderList) paths.set(folder.id, [...path, folder.name])
  }
  return paths
}

/** `next`: the query of the page after it. */
type Page<Body> = { body: Body; next: string | undefined }
type Answer = { headers: Headers; bytes: Buffer }
type OtherServer = ReturnType<typeof openOtherServer>

/** The API of the other server, asked `pace` times a minute at most. All throw a Failure that has its answer. */
function openOtherServer({ origin, key, pace, signal }: { origin: string; key: string; pace: number; signal: AbortSignal }) {
  const intervalMs = 60_000 / pace
  let nextAtMs = 0
  let hasAnswered = false

  /** Again, while the other server cannot answer it now. */
  async function patiently<T>(request: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      await pause(Math.max(0, nextAtMs - performance.now()), undefined, { signal })
      nextAtMs = performance.now() + intervalMs
      try {
        return await request()
      } catch (error) {
        const isTemporary = error instanceof Failure && error.kind === 'unavailable'
        if (!isTemporary || !hasAnswered || attempt >= MAX_ATTEMPTS) throw error
        await pause(Math.min(error.retryAfterS ?? 2, MAX_RETRY_AFTER_S) * 1000, undefined, { signal })
      }
    }
  }

  async function request(url: string): Promise<Answer> {
    const headers = { Authorization: `Apisecret ${key}`, Accept: 'application/json' }
    const timed = AbortSignal.any([signal, AbortSignal.timeout(REQUEST_TIMEOUT_MS)])
    try {
      const response = await fetch(url, { headers, redirect: 'manual', signal: timed })
      hasAnswered = true
      const bytes = Buffer.concat(
        await Array.fromAsync(limitBytes(Readable.from(response.body ?? []), MAX_ANSWER_BYTES, tooLarge)),
      )
      if (response.status !== 200) throw refusal(response, bytes)
      return { headers: response.headers, bytes }
    } catch (cause) {
      signal.throwIfAborted()
      if (cause instanceof Failure) throw cause
      throw new Failure('unavailable', `${origin} does not answer. Check the address, or run this again when it does.`, { cause })
    }
  }

  function refusal({ status, headers }: Response, bytes: Buffer): Failure {
    const body = readJson(bytes)
    const reason = Value.Check(Message, body) ? body.message : UNKNOWN_REASON
    const sentence = `${origin} answered ${status}: ${headers.has('Location') ? REDIRECTED : reason}`
    return new Failure(kindOf(status), sentence, { retryAfterS: Number(headers.get('Retry-After')) || undefined })
  }

  async function readPage<S extends TSchema>(path: string, schema: S): Promise<Page<Static<S>>> {
    const url = `${origin}/api${path}`
    const { headers, bytes } = await patiently(() => request(url))
    const body = readJson(bytes)
    if (!Value.Check(schema, body)) throw new Failure('conflict', `${url} answered something else than this API does. ${CHECK}`)
    return { body, next: readNextQuery(headers.get('Link')) }
  }

  const read = async <S extends TSchema>(path: string, schema: S) => (await readPage(path, schema)).body
  return {
    readPage,
    read,
    /** Undefined: an older server has no such route. */
    find: async <S extends TSchema>(path: string, schema: S): Promise<Static<S> | undefined> =>
      read(path, schema).catch((error) => {
        if (!(error instanceof Failure) || error.kind !== 'not-found') throw error
        return undefined
      }),
    patiently,
  }
}

const CHECK = 'Check the address.'
const UNKNOWN_REASON = `but not as this API does. ${CHECK}`
const REDIRECTED = 'it leads to another address. Use that one.'

function kindOf(status: number): FailureKind {
  if (status === 429 || status >= 500) return 'unavailable'
  const kinds: Readonly<Record<number, FailureKind>> = { 401: 'unauthenticated', 403: 'forbidden', 404: 'not-found' }
  return kinds[status] ?? 'conflict'
}

function tooLarge(): Failure {
  return new Failure('too-large', `It has more than ${MAX_ANSWER_BYTES / 2 ** 20} MiB.`)
}

/** Of RFC 8288's header. Only the query: the server may know itself by another address. */
function readNextQuery(header: string | null): string | undefined {
  const end = '>; rel="next"'
  const links = header?.split(',').map((link) => link.trim())
  const next = links?.find((link) => link.startsWith('<') && link.endsWith(end))
  return next && URL.parse(next.slice(1, -end.length))?.search
}

/** Undefined: something else, such as a page. */
function readJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    return undefined
  }
}

/** @throws Failure `invalid` */
function readOrigin(text: string): string {
  const url = URL.parse(text)
  if (!url?.protocol.startsWith('http') || url.username || url.password || url.search || url.hash)
    throw new Failure('invalid', '--from expects the address of the other server, such as https://video.example.org.')
  return url.href.replace(/\/(api\/?)?$/, '')
}

function describe({ videos, added, problems }: Report): string {
  const lines = problems.map(({ video, title, problem }) => `  ${[video, title].filter(Boolean).join('  ')}\n    ${problem}\n`)
  const end = problems.length === 0 ? 'Everything is here.' : `${problems.length} could not come:`
  return `${videos} videos there, ${added} copied now. ${end}\n${lines.join('')}`
}
