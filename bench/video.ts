import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { audioEncoderArgs, videoEncoderArgs, videoFilters } from '../src/encode/encoder.ts'
import type { Plan } from '../src/encode/plan.ts'
import { createOwner, type Owner } from '../test/client.ts'
import {
  countPlannedSegments,
  findEncoders,
  type Installed,
  listSegments,
  untilEncoded,
  untilStoryboardMade,
} from '../test/data-folder.ts'
import { readRows } from '../test/rows.ts'
import { measureInterleaved, timeMs } from './interleaved.ts'
import type { Row, Scope } from './row.ts'
import { firstApiKey, type ListeningProcess, startService } from './service.ts'
import { make48SVideo } from './videos.ts'

const ffmpeg = (args: readonly string[]) => promisify(execFile)('ffmpeg', ['-nostdin', '-v', 'error', ...args])

export const VIDEO_ROWS: readonly Row[] = [
  {
    name: 'ladder',
    what: '48 s of 720p from upload end to the last segment of three rungs and audio; peer: one ffmpeg that writes the same',
    unit: 's',
    aim: { ratioAtMost: 1.1 },
    prepare: make48SVideo,
    measure: async (scope) => {
      const video = await make48SVideo()
      const encodeService = await openEncodeService(scope)
      const plan = await encodeService.encode(video).then(({ plan }) => plan) // warm up
      return measureInterleaved(
        3,
        async () => (await encodeService.encode(video)).seconds,
        async () => (await timeMs(() => encodeBare(scope, video, plan))) / 1000,
      )
    },
  },
  {
    name: 'ladder-extras',
    what: 'the same video with its loudness evened out, until its storyboard is there; peer: neither, until the last segment',
    unit: 's',
    aim: { ratioAtMost: 1.06 },
    prepare: make48SVideo,
    measure: async (scope) => {
      const video = await make48SVideo()
      const { encode, evenOutLoudness } = await openEncodeService(scope)
      await encode(video) // warm up
      return measureInterleaved(
        2,
        async () => {
          await evenOutLoudness(true)
          return (await encode(video, { until: untilStoryboardMade })).seconds
        },
        async () => {
          await evenOutLoudness(false)
          return (await encode(video)).seconds
        },
      )
    },
  },
  {
    name: 'killed',
    what: 'the same video with a kill -9 half-way, no ffmpeg left behind; peer: a run without a kill',
    unit: 's',
    aim: { maxExtraS: 15 },
    prepare: make48SVideo,
    measure: async (scope) => {
      const video = await make48SVideo()
      const encodeService = await openEncodeService(scope)
      return measureInterleaved(
        1,
        async () => (await encodeService.encode(video, { killed: true })).seconds,
        async () => (await encodeService.encode(video)).seconds,
      )
    },
  },
]

/** A service that encodes one video after the other. */
async function openEncodeService(scope: Scope) {
  const dataDir = join(scope.folder, 'data')
  const installed: Installed = { dataDir, masterKeyFile: `${dataDir}.key` }
  let service: ListeningProcess = await startService(scope, dataDir)
  const apiKey = firstApiKey(service)
  const owner = (): Owner => createOwner(service.url, apiKey)

  async function killAndRestart(videoId: string) {
    const planned = () => countPlannedSegments(installed, videoId)
    while (planned() === 0 || listSegments(installed, videoId).length < planned() / 2) await pause(20)
    await service.kill()
    const killedAtMs = performance.now()
    while ((await findEncoders(installed)).length > 0) {
      if (performance.now() - killedAtMs > 5_000) throw new Error('ffmpeg outlived a killed service by 5 s')
      await pause(20)
    }
    service = await startService(scope, dataDir)
  }

  /** Uploads, and waits for the last segment, or for more; the time starts with the upload's response. */
  async function encode(video: string, { killed = false, until = untilEncoded } = {}): Promise<{ seconds: number; plan: Plan }> {
    const videoId = await owner().upload('A video', video)
    const ms = await timeMs(async () => {
      if (killed) await killAndRestart(videoId)
      await until(installed, videoId)
    })
    const plan = getPlan(installed, videoId)
    await owner().delete([videoId])
    return { seconds: ms / 1000, plan }
  }

  async function evenOutLoudness(isOn: boolean): Promise<void> {
    await owner().call('PUT', '/api/account', { body: { normalizesLoudness: isOn } })
  }

  return { encode, evenOutLoudness }
}

function getPlan(installed: Installed, videoId: string): Plan {
  const [row] = readRows<{ plan: string }>(installed, 'select plan from generation where video_id = ?', videoId)
  return JSON.parse(row?.plan ?? '')
}

/** A hand-written command: the same rungs by the same encoder, as clear files, in one process that uses all cores. */
async function encodeBare(scope: Scope, video: string, { videoTrack, audioTrack }: Plan): Promise<void> {
  if (videoTrack?.renditions.length !== 3 || !audioTrack) throw new Error('the video does not have three rungs and audio')
  const folder = join(scope.folder, 'bare')
  await mkdir(folder, { recursive: true })
  const rungs = videoTrack.renditions
  const scaled = rungs.map(({ id, widthPx, heightPx }) => `;[r${id}]scale=${widthPx}:${heightPx},setsar=1[v${id}]`)
  const chain = [`fps=${videoTrack.rateNum}/${videoTrack.rateDen}:start_time=0`, ...videoFilters(videoTrack), 'split=3']
  await ffmpeg([
    ...[
      '-i',
      video,
      '-filter_complex',
      `[0:V:0]${chain.join(',')}${rungs.map(({ id }) => `[r${id}]`).join('')}${scaled.join('')}`,
    ],
    ...rungs.flatMap((rendition) => [
      ...['-map', `[v${rendition.id}]`, ...videoEncoderArgs(videoTrack, rendition)],
      ...['-y', join(folder, `${rendition.id}.mp4`)],
    ]),
    ...['-map', '0:a:0', ...audioEncoderArgs(audioTrack), '-y', join(folder, 'audio.aac')],
  ])
}
