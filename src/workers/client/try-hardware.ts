import { hash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { checkStructure } from '../../encode/check/check-result.ts'
import { Refusal } from '../../encode/check/refusal.ts'
import { type ChunkSink, encodeOnHardware } from '../../encode/chunk.ts'
import { encoderFingerprint } from '../../encode/encoder.ts'
import { HARDWARE, type Hardware, HardwareFailure } from '../../encode/hardware.ts'
import type { HardwareName } from '../../encode/hardware-names.ts'
import type { VideoRendition, VideoTrackPlan } from '../../encode/plan.ts'
import { Failure } from '../../errors.ts'
import type { Sandbox } from '../../sandbox/bubblewrap.ts'
import { runMediaToFiles } from '../../sandbox/run.ts'

/** The encoder of a graphics card cannot be used on this machine, and why: a sentence for its owner. */
export class HardwareUnusable extends Failure {
  constructor(codec: string, why: string) {
    super('unavailable', `--encoder ${codec}: ${why}`)
  }
}

/** An encoder that was tried. */
export type TriedHardware = {
  hardware: Hardware
  /** What it encodes with, as `encoderFingerprint`: machines that write the same parameter sets have the same. */
  fingerprint: string
}

/** The largest rung, whose height is no whole number of macroblocks, and the smallest. The last GOP is short. */
const RENDITIONS: readonly VideoRendition[] = [
  { id: 1, widthPx: 1920, heightPx: 1080, maxBitrateBps: 5_000_000, level: 40 },
  { id: 2, widthPx: 426, heightPx: 240, maxBitrateBps: 400_000, level: 21 },
]
const BT709 = { matrix: 'bt709', range: 'tv', primaries: 'bt709', transfer: 'bt709', alpha: false, coarse: false } as const
const TRACK: VideoTrackPlan = {
  ...{
    rateNum: 25,
    rateDen: 1,
    aspectRatio: 16 / 9,
    interlaced: false,
    timescale: 90_000,
    gopFrames: 10,
    frameCount: 15,
    color: BT709,
  },
  renditions: RENDITIONS,
}
const CHUNK = { kind: 'video', firstSegment: 0, segmentCount: 2, decodesFromStart: false } as const
const LIMITS = { cpuS: 60, wallS: 120 }

const CARD = 'the driver of the graphics card, and whether this user may open its device (on Linux mostly by the group "render")'
const DEVICES: Readonly<Record<HardwareName, { folder: string; named: string }>> = {
  h264_nvenc: { folder: '/dev', named: 'nvidiactl' },
  h264_qsv: { folder: '/dev/dri', named: 'renderD' },
  h264_vaapi: { folder: '/dev/dri', named: 'renderD' },
}

/**
 * Encodes two segments on the graphics card, as a chunk is encoded, and checks them as a server does: a worker whose encoder writes something that
 * servers refuse ends here, and not with its suspension.
 * @throws HardwareUnusable
 */
export async function tryHardware(sandbox: Sandbox, name: HardwareName): Promise<TriedHardware> {
  return tryEncoder(sandbox, HARDWARE[name], DEVICES[name])
}

/** @param device what its device is named, if it needs one */
export async function tryEncoder(
  sandbox: Sandbox,
  hardware: Hardware,
  device?: { folder: string; named: string },
): Promise<TriedHardware> {
  const { codec } = hardware
  if (!(await listEncoders(sandbox)).has(codec))
    throw new HardwareUnusable(codec, 'the ffmpeg of this machine was built without it.')
  if (device && !hasDevice(device))
    throw new HardwareUnusable(
      codec,
      `this machine has no device ${device.folder}/${device.named}…: it has no such graphics card, or its driver is not installed; a container must be given the device.`,
    )
  const inits = new Map<number, Buffer>()
  const segments = new Map<string, Buffer>()
  const sink: ChunkSink = {
    onInit: (id, bytes) => void inits.set(id, bytes),
    onSegment: (id, number, bytes) => void segments.set(`${id}/${number}`, bytes),
  }
  try {
    for (const rendition of RENDITIONS) await encodeTestPicture(sandbox, hardware, rendition, sink)
    const encoder = `${encoderFingerprint(sandbox)}, ${codec} ${digestOf(inits)}`
    await checkStructure({
      ...{ sandbox, encoder, plan: { durationS: TRACK.frameCount / TRACK.rateNum, isSeekable: true, videoTrack: TRACK } },
      ...{ chunk: CHUNK, inits, segments: listSegments(segments) },
    })
    return { hardware, fingerprint: encoder }
  } catch (error) {
    if (error instanceof HardwareFailure)
      throw new HardwareUnusable(codec, `it does not encode on this machine: ${error.message.replace(/\.$/, '')}. Check ${CARD}.`)
    if (error instanceof Refusal)
      throw new HardwareUnusable(
        codec,
        `servers would refuse what it writes on this machine: ${error.message}. Without --encoder this machine encodes with its processor.`,
      )
    throw error
  }
}

/** Whether an encoder that failed still works. @throws HardwareUnusable */
export async function tryAgain(sandbox: Sandbox, { hardware, fingerprint }: TriedHardware): Promise<void> {
  const tried = await tryEncoder(sandbox, hardware)
  if (tried.fingerprint !== fingerprint)
    throw new HardwareUnusable(hardware.codec, 'it writes other parameter sets than at the start.')
}

async function encodeTestPicture(
  sandbox: Sandbox,
  hardware: Hardware,
  rendition: VideoRendition,
  sink: ChunkSink,
): Promise<void> {
  const { widthPx, heightPx } = rendition
  const { rateNum, frameCount } = TRACK
  const rung = encodeOnHardware({ sandbox, hardware }, TRACK, rendition, { first: 0, count: frameCount }, sink)
  const picture = `testsrc2=s=${widthPx}x${heightPx}:r=${rateNum},format=yuv420p`
  await runMediaToFiles(sandbox, {
    args: ['-f', 'lavfi', '-i', picture, '-frames:v', String(frameCount), '-f', 'rawvideo', 'pipe:3'],
    pipes: [rung.reader],
    limits: LIMITS,
  })
  if (rung.frames() < frameCount) throw new HardwareFailure('it does not begin a segment at each key frame that was asked for')
}

function listSegments(segments: ReadonlyMap<string, Buffer>) {
  return [...segments].map(([name, bytes]) => {
    const [renditionId = 0, number = 0] = name.split('/').map(Number)
    return { renditionId, number, sizeBytes: bytes.length, read: async () => bytes }
  })
}

function digestOf(inits: ReadonlyMap<number, Buffer>): string {
  return hash('sha256', Buffer.concat([...inits.values()])).slice(0, 8)
}

async function listEncoders(sandbox: Sandbox): Promise<Set<string>> {
  let list = ''
  const stdout = async (bytes: AsyncIterable<Buffer>) => {
    for await (const part of bytes) list += part.toString('latin1')
  }
  await runMediaToFiles(sandbox, { args: ['-encoders'], stdout, limits: LIMITS })
  return new Set([...list.matchAll(/^ V\S{5} (\S+)/gm)].flatMap(([, name]) => name ?? []))
}

function hasDevice({ folder, named }: { folder: string; named: string }): boolean {
  try {
    return readdirSync(folder).some((file) => file.startsWith(named))
  } catch {
    return false // the folder is missing
  }
}
