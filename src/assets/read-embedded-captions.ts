import { inputClockArgs } from '../encode/encoder.ts'
import type { Plan } from '../encode/plan.ts'
import { Failure } from '../errors.ts'
import type { Sandbox } from '../sandbox/bubblewrap.ts'
import { type MediaEnd, type MediaLimits, type Reader, type SealedSource, wasKilled } from '../sandbox/media-run.ts'
import { runMedia } from '../sandbox/run.ts'
import { MAX_CAPTION_BYTES, parseInWorker } from './caption.ts'

/** A stream of captions to be read: ffmpeg's number of it, and its language as it is stored. */
type Track = { streamIndex: number; language: string }
type EmbeddedSource = { sandbox: Sandbox; source: SealedSource; plan: Plan; signal: AbortSignal }

/** Plain WebVTT, on the time line of the whole file; or why there is none, for its owner. */
export type ReadCaptions = { webVtt: Buffer } | { problem: string }

/**
 * Reads the captions inside of a source, all in one pass: ffmpeg converts them, in its sandbox. A track that cannot be read spoils no other.
 * @returns in the order of `tracks`
 * @throws the signal's reason; a failure of the host
 */
export async function readEmbeddedCaptions(from: EmbeddedSource, tracks: readonly Track[]): Promise<ReadCaptions[]> {
  const { end, texts } = await convert(from, tracks)
  if (end.exitCode !== 0 && !end.outOfTime && tracks.length > 1) {
    const each: ReadCaptions[] = []
    for (const track of tracks) each.push(...(await readEmbeddedCaptions(from, [track])))
    return each
  }
  const read: ReadCaptions[] = []
  for (const [index, { language }] of tracks.entries()) {
    const text = texts[index]
    if (end.outOfTime) read.push({ problem: TOOK_TOO_LONG })
    else if (!text || end.exitCode !== 0) read.push({ problem: UNREADABLE })
    else read.push(await toPlainCaptions(text, language, from.plan.startS))
  }
  return read
}

const TOOK_TOO_LONG = 'Reading these captions out of the file took too long.'
const UNREADABLE = 'These captions could not be read out of the file: they are damaged.'
const NO_TEXT = 'These captions have no text in the file.'
const TOO_LONG = 'These captions are too long: a file of captions has at most 5 MiB.'

type Text = { bytes: Buffer; isTooLong: boolean }

async function convert({ sandbox, source, plan, signal }: EmbeddedSource, tracks: readonly Track[]) {
  const kept = tracks.map(() => keepFirst(MAX_CAPTION_BYTES))
  const end = await runMedia(sandbox, {
    tool: 'ffmpeg',
    source,
    isPiped: plan.isPiped,
    // Texts in an old encoding are passed on as they are: their language says which one it is.
    inputArgs: [...inputClockArgs(plan), '-sub_charenc_mode', 'ignore'],
    outputArgs: tracks.flatMap(({ streamIndex }, index) => [
      ...['-map', `0:${streamIndex}`, '-c:s', 'webvtt', '-avoid_negative_ts', 'disabled', '-f', 'webvtt'],
      `pipe:${3 + index}`,
    ]),
    pipes: kept.map(({ reader }) => reader),
    limits: readLimits(source.sizeBytes),
    signal,
  })
  if (wasKilled(end) && !end.outOfTime) throw crashed(end)
  return { end, texts: kept.map(({ text }) => text()) }
}

/** Reads at 10 MB/s at least. */
function readLimits(sizeBytes: number): MediaLimits {
  const cpuS = 60 + sizeBytes / 10_000_000
  return { cpuS, wallS: 2 * cpuS }
}

function crashed({ exitCode }: MediaEnd): Error {
  return new Error(`ffmpeg crashed or was killed while it read captions, with exit code ${exitCode}`)
}

/** A reader that keeps so many bytes, and reads on: the output of one track must not end the others. */
function keepFirst(maxBytes: number): { reader: Reader; text(): Text } {
  const parts: Buffer[] = []
  let sizeBytes = 0
  return {
    async reader(bytes) {
      for await (const part of bytes) {
        sizeBytes += part.length
        if (sizeBytes <= maxBytes) parts.push(part)
      }
    },
    text: () => ({ bytes: Buffer.concat(parts), isTooLong: sizeBytes > maxBytes }),
  }
}

/** Shapes that ASS draws, of which ffmpeg leaves the commands. */
const DRAWING = /^[mn] [-\d.][-\d. mnlbspc]*$/gm

async function toPlainCaptions({ bytes, isTooLong }: Text, language: string, startS = 0): Promise<ReadCaptions> {
  if (isTooLong) return { problem: TOO_LONG }
  if (!bytes.includes('-->')) return { problem: NO_TEXT }
  // In the encoding of the file: each byte a character.
  const text = Buffer.from(bytes.toString('latin1').replace(DRAWING, ''), 'latin1')
  try {
    return { webVtt: await parseInWorker(text, language, -Math.round(startS * 1000)) }
  } catch (error) {
    if (error instanceof Failure && error.kind === 'invalid') return { problem: error.message }
    throw error
  }
}
