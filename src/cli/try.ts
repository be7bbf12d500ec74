import { access, constants, stat } from 'node:fs/promises'
import { basename, extname, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Static, TSchema } from 'typebox'
import type { Config } from '../config/config.ts'
import { type ServerCommandName, TryCancellation, TryLink, TryProgress, TryStart } from '../control/server-commands.ts'
import { assertServerRuns } from '../control/socket.ts'
import { Failure } from '../errors.ts'
import { formatSize } from '../format-size.ts'
import { formatDuration, openProgress, type ProgressView } from './progress-view.ts'
import { parseResult, runOnServer } from './run-command.ts'
import { uploadVideo } from './send-video.ts'

type TryOptions = { account?: string; json?: true }
type SourceFile = { path: string; fileName: string; sizeBytes: number }
type Send = <S extends TSchema>(name: ServerCommandName, args: unknown, reply: S) => Promise<Static<S>>
/** What every step needs: the running server, the progress on the terminal, and the signal of Ctrl-C. */
type Run = { send: Send; view: ProgressView; signal: AbortSignal }
type Video = { accountId: string; videoId: string }

const POLL_INTERVAL_MS = 300
/** Progress goes to stderr; stdout has the link. */
const OUT = process.stderr

/**
 * Uploads a video to the running server like any client, shows the progress of encoding, and prints a link that opens it once.
 * With `json` it ends with the link, else when the video is completely encoded.
 * @throws Failure that says why there is no video to watch; no incomplete video remains then
 */
export async function tryVideo(config: Config, path: string, { account, json }: TryOptions): Promise<void> {
  const source = await findSourceFile(path)
  assertServerRuns(config)
  const send: Send = async (name, args, reply) => parseResult(reply, await runOnServer(config, name, args))
  using progress = openProgress(json === true)
  const { view, signal } = progress
  const title = Array.from(basename(source.fileName, extname(source.fileName)))
    .slice(0, 500)
    .join('')
  if (!json) OUT.write(`${source.fileName}, ${formatSize(source.sizeBytes)}\n`)
  const run = { send, view, signal }
  const video = await upload(run, source, { account, title: title || source.fileName })
  const link = await waitUntilPlayable(run, video)
  view.clear()
  process.stdout.write(json ? `${JSON.stringify({ ...video, watchUrl: link.url })}\n` : describeLink(link))
  if (!json) await waitUntilEncoded(run, video)
}

/** @throws Failure for a path that is not a readable file, before anything is sent */
async function findSourceFile(argument: string): Promise<SourceFile> {
  const path = resolve(argument)
  const reject = (problem: string): never => {
    throw new Failure('invalid', `${argument} ${problem}.`)
  }
  const found = await stat(path).catch(() => reject('does not exist: name a video on this machine'))
  if (found.isDirectory()) reject('is a folder: name one video in it')
  if (!found.isFile()) reject('is not a file: name a video')
  if (found.size === 0) reject('is empty: name a video')
  await access(path, constants.R_OK).catch(() => reject('cannot be read: correct its permissions'))
  return { path, fileName: basename(path), sizeBytes: found.size }
}

async function upload({ send, view, signal }: Run, source: SourceFile, options: { account: string | undefined; title: string }) {
  const { uploadUrl, form, accountId, videoId } = await send('try begin', options, TryStart)
  const video = { accountId, videoId }
  try {
    const reportSent = (bytes: number) =>
      view.show(bytes / source.sizeBytes, `uploading, ${formatSize(bytes)} of ${formatSize(source.sizeBytes)}`)
    await uploadVideo({ ...source, url: uploadUrl, form }, reportSent, signal)
  } catch (error) {
    const end = await send('try withdraw', video, TryCancellation).catch(() => undefined)
    if (signal.aborted) throw interrupted(end ? (end.withdrawn ? 'Stopped: the video was removed.' : KEPT) : UNKNOWN)
    if (end?.withdrawn !== false) throw error
    // The upload is complete, and only the response got lost.
  }
  return video
}

async function waitUntilPlayable({ send, view, signal }: Run, video: Video): Promise<Static<typeof TryLink>> {
  for (;;) {
    const progress = await send('try progress', video, TryProgress)
    throwIfFailed(progress)
    if (progress.status === 'ready') return send('try link', video, TryLink)
    view.show(progress.part, progress.step)
    await waitToPoll(signal, KEPT)
  }
}

async function waitUntilEncoded({ send, view, signal }: Run, video: Video): Promise<void> {
  for (;;) {
    const progress = await send('try progress', video, TryProgress)
    throwIfFailed(progress)
    if (progress.isWhole) {
      view.clear()
      if (progress.reason) OUT.write(`${progress.reason}\n`)
      OUT.write('Encoded.\n')
      return
    }
    view.show(progress.part, `${progress.step}; it plays already`)
    if (signal.aborted) return
    await pause(POLL_INTERVAL_MS, undefined, { signal }).catch(() => undefined)
  }
}

function throwIfFailed({ status, reason }: Static<typeof TryProgress>): void {
  if (status === 'Not a media file' || status === 'Encoding error') throw new Failure('invalid', reason ?? `${status}.`)
}

const KEPT = 'Stopped watching. The video was uploaded, and the server continues to encode it.'

const UNKNOWN = 'Stopped. The server did not answer: if the video is in its list without a file, delete it there.'

async function waitToPoll(signal: AbortSignal, message: string): Promise<void> {
  await pause(POLL_INTERVAL_MS, undefined, { signal }).catch(() => {
    throw interrupted(message)
  })
}

function interrupted(message: string): Failure {
  return new Failure('unavailable', message)
}

function describeLink({ url, ttlS }: Static<typeof TryLink>): string {
  return `It plays. This link opens once, in one browser, within ${formatDuration(ttlS)}:\n\n  ${url}\n\n`
}
