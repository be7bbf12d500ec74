import { LRUCache } from 'lru-cache'
import { splitFragments } from '../../mp4/fragments.ts'
import type { Sandbox } from '../../sandbox/bubblewrap.ts'
import { runMediaToFiles } from '../../sandbox/run.ts'
import { throwIfFailed } from '../chunk.ts'
import { encodedVideoFilters, videoEncoderArgs } from '../encoder.ts'
import type { VideoRendition, VideoTrackPlan } from '../plan.ts'

const LIMITS = { cpuS: 60, wallS: 240 }

/** Those of the last videos, whose chunks come one by one. */
const known = new WeakMap<Sandbox, LRUCache<string, ReadonlyMap<number, Buffer>>>()
const MAX_KNOWN = 100

/**
 * The init segments of a video's renditions, by their ids: those that each encode of it makes, since they depend on the plan and the encoder alone.
 * They are made from one black frame, without the source.
 * @throws Error when ffmpeg fails; Failure `unavailable` where the sandbox does not start; the signal's reason
 */
export async function findVideoInits(
  sandbox: Sandbox,
  videoTrack: VideoTrackPlan,
  signal?: AbortSignal,
): Promise<ReadonlyMap<number, Buffer>> {
  const inits = known.get(sandbox) ?? new LRUCache({ max: MAX_KNOWN })
  known.set(sandbox, inits)
  const { rateNum, rateDen, timescale, gopFrames, color, renditions } = videoTrack
  const name = JSON.stringify([sandbox.ffmpegVersion, rateNum, rateDen, timescale, gopFrames, color, renditions])
  const found = inits.get(name) ?? (await makeVideoInits(sandbox, videoTrack, signal))
  inits.set(name, found)
  return found
}

async function makeVideoInits(sandbox: Sandbox, videoTrack: VideoTrackPlan, signal?: AbortSignal): Promise<Map<number, Buffer>> {
  const inits = new Map<number, Buffer>()
  const { renditions } = videoTrack
  const end = await runMediaToFiles(sandbox, {
    args: [
      ...['-filter_complex', renditions.map((rendition, index) => `${blackFrame(videoTrack, rendition)}[v${index}]`).join(';')],
      ...renditions.flatMap((rendition, index) => [
        ...['-map', `[v${index}]`, '-fps_mode', 'passthrough', '-threads', '1', '-frames:v', '1'],
        ...[...videoEncoderArgs(videoTrack, rendition), `pipe:${3 + index}`],
      ]),
    ],
    pipes: renditions.map(({ id }) => async (bytes) => {
      for await (const part of splitFragments(bytes)) if (part.kind === 'init') inits.set(id, part.bytes)
    }),
    limits: LIMITS,
    signal,
  })
  throwIfFailed(end)
  if (inits.size !== renditions.length) throw new Error('the encoder made no init segment')
  return inits
}

function blackFrame(videoTrack: VideoTrackPlan, { widthPx, heightPx }: VideoRendition): string {
  const { rateNum, rateDen } = videoTrack
  return [`color=black:s=${widthPx}x${heightPx}:r=${rateNum}/${rateDen}`, ...encodedVideoFilters(videoTrack), 'setsar=1'].join(
    ',',
  )
}
