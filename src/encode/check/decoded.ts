import { PassThrough, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Sandbox } from '../../sandbox/bubblewrap.ts'
import { wasKilled } from '../../sandbox/media-run.ts'
import { runOnFragments } from '../../sandbox/run.ts'
import { chunkLimits, firstLine } from '../chunk.ts'
import { splitEvery } from '../split-every.ts'
import { Refusal } from './refusal.ts'
import type { ResultSegment } from './result.ts'

/** What a rendition's segments decode to, taken block by block while it is decoded. */
export type Decoded = {
  /** Decodes all of it. @throws Refusal where that gives errors; Error when ffmpeg was killed; what reading a segment threw; the signal's reason */
  run(signal: AbortSignal): Promise<void>
  /** The next block; undefined: there is none. */
  next(): Promise<Buffer | undefined>
}

/**
 * Decodes segments of one rendition in the sandbox, in the order given, as fast as blocks are taken.
 * @param output.args ffmpeg's output options without the output's name
 */
export function decodeSegments(
  sandbox: Sandbox,
  { init, segments }: { init: Buffer; segments: readonly ResultSegment[] },
  output: { args: readonly string[]; blockBytes: number; lengthS: number },
): Decoded {
  const opened = Promise.withResolvers<AsyncGenerator<Buffer, void, undefined>>()
  opened.promise.catch(() => undefined) // a run that does not start throws by itself

  async function* join() {
    yield init
    for (const segment of segments) yield await segment.read()
  }

  return {
    async run(signal) {
      try {
        const end = await runOnFragments(sandbox, {
          fragments: Readable.from(join()),
          inputArgs: ['-threads', '1'],
          outputArgs: [...output.args, 'pipe:3'],
          pipes: [
            async (bytes) => {
              // Node drops what is not read yet when a child ends: so it is read from the start, and waits here.
              const waiting = new PassThrough()
              opened.resolve(splitEvery(waiting, output.blockBytes))
              await pipeline(bytes, waiting, { signal })
            },
          ],
          limits: chunkLimits(output.lengthS, 0),
          signal,
        })
        if (wasKilled(end)) throw new Error(`ffmpeg was killed with exit code ${end.exitCode} while it decoded a result`)
        if (end.exitCode !== 0 || end.errorLines > 0) throw new Refusal(`does not decode cleanly: ${firstLine(end)}`)
      } finally {
        opened.reject(new Error('its decoder has ended'))
      }
    },
    async next() {
      const { value } = await (await opened.promise).next()
      return value ?? undefined
    },
  }
}
