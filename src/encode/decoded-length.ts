import type { Sandbox } from '../sandbox/bubblewrap.ts'
import type { SealedSource } from '../sandbox/media-run.ts'
import { runMedia } from '../sandbox/run.ts'
import { chunkLimits } from './chunk.ts'

/** Enough to count seconds by. */
const [RATE_HZ, SAMPLE_BYTES] = [8000, 2]

/**
 * How long the sound of a file is by its samples, where its packets state wrong times.
 * @returns seconds; undefined where decoding takes too long
 */
export async function measureByDecoding(
  { sandbox, source, signal }: { sandbox: Sandbox; source: SealedSource; signal: AbortSignal | undefined },
  index = 'a:0',
  statedS: number,
): Promise<number | undefined> {
  let sizeBytes = 0
  const end = await runMedia(sandbox, {
    tool: 'ffmpeg',
    source,
    outputArgs: ['-map', `0:${index}`, '-ac', '1', '-ar', String(RATE_HZ), '-f', 's16le', 'pipe:3'],
    pipes: [
      async (bytes) => {
        for await (const part of bytes) sizeBytes += part.length
      },
    ],
    limits: chunkLimits(0, statedS),
    signal,
  })
  return end.outOfTime || end.exitCode !== 0 ? undefined : sizeBytes / SAMPLE_BYTES / RATE_HZ
}
