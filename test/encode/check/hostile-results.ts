import { randomFillSync } from 'node:crypto'
import path from 'node:path'
import type { Result } from '../../../src/encode/check/result.ts'
import { getBox } from '../../../src/mp4/boxes.ts'
import { placeFragment, readFragment } from '../../../src/mp4/fragments.ts'
import type { Chance } from '../../seeded-random.ts'
import { ffmpeg, newFolder, type OpenVideo, openVideo } from '../videos.ts'
import { encodeResult, replace } from './results.ts'

// What a worker could send in place of what it was asked for, drawn by chance.

export type Victim = {
  file: string
  opened: OpenVideo
  video: Result
  audio: Result
  /** Another video of the same shape. */
  other: OpenVideo
}

const CHUNK = { firstSegment: 1, segmentCount: 2, decodesFromStart: false } as const
export const VIDEO_CHUNK = { ...CHUNK, kind: 'video' } as const
export const AUDIO_CHUNK = { ...CHUNK, kind: 'audio' } as const

export async function newVictim(folder: string, file: string, otherFile: string): Promise<Victim> {
  const [opened, other] = [await openVideo(file, folder), await openVideo(otherFile, folder)]
  const [video, audio] = [await encodeResult(opened, VIDEO_CHUNK), await encodeResult(opened, AUDIO_CHUNK)]
  return { file, opened, video, audio, other }
}

type Attack = (victim: Victim, chance: Chance) => Promise<Result>

export const ATTACKS = {
  garbage: async ({ video, audio }, chance) =>
    replaceOne(chance.next() < 0.5 ? video : audio, chance, (bytes) => {
      const garbage = Buffer.from(bytes)
      // All of it, the samples alone, or from somewhere on.
      const from = [0, getBox(bytes, ['mdat']).contentStart, Math.floor(chance.between(0, bytes.length / 2))][
        Math.floor(chance.between(0, 3))
      ]
      return randomFillSync(garbage, from)
    }),
  bomb: async ({ video, audio }, chance) =>
    replaceOne(chance.next() < 0.5 ? video : audio, chance, (bytes) => {
      const bomb = Buffer.concat([bytes, Buffer.alloc(chance.next() < 0.5 ? 0 : 2 ** 20)])
      const moof = getBox(bytes, ['mdat']).start
      bomb.writeUInt32BE(Math.floor(chance.between(0, 2 ** 32)), 4 * Math.floor(chance.between(0, moof / 4)))
      return bomb.equals(bytes) ? Buffer.alloc(0) : bomb
    }),
  'a logo in a corner': async (victim, chance) => {
    const [width, height] = [chance.between(0.06, 0.12), chance.between(0.06, 0.12)]
    const [x, y] = [chance.next() < 0.5 ? 0.03 : 0.97 - width, chance.next() < 0.5 ? 0.03 : 0.97 - height]
    const box = (share: number, color: string) =>
      `drawbox=x=iw*${x + share * width}:y=ih*${y}:w=iw*${width / 2}:h=ih*${height}:color=${color}@0.8:t=fill`
    return encodeChanged(victim, chance, ['-vf', `${box(0, 'white')},${box(0.5, 'black')}`])
  },
  'three foreign frames': async (victim, chance) => {
    const at = Math.floor(framesBefore(victim) + chance.between(0, framesOf(victim) - 3))
    const graph = `[1:v][0:v]scale2ref[a][b];[b][a]overlay=enable='between(n,${at},${at + 2})':eof_action=repeat`
    return encodeChanged(victim, chance, ['-filter_complex', graph], ['-f', 'lavfi', '-i', 'rgbtestsrc=s=320x180:r=25:d=1'])
  },
  'a frozen second': async (victim, chance) => {
    const second = Math.round(rateOf(victim))
    const at = Math.floor(framesBefore(victim) + chance.between(1, framesOf(victim) - second))
    return encodeChanged(victim, chance, ['-vf', `select='not(between(n,${at},${at + second - 1}))'`, '-fps_mode', 'passthrough'])
  },
  'swapped segments': async ({ video, audio }, chance) => {
    const result = chance.next() < 0.6 ? video : audio
    const swapped = await Promise.all(
      result.segments.map(async ({ renditionId, number }) => {
        const source = result.segments.find((other) => other.renditionId === renditionId && other.number !== number)
        const bytes = Buffer.from((await source?.read()) ?? [])
        const own = await result.segments.find((other) => other.renditionId === renditionId && other.number === number)?.read()
        placeFragment(bytes, { sequence: number + 1, decodeTime: readFragment(own ?? bytes).decodeTime, compositionShift: 0 })
        return [`${renditionId}/${number}`, bytes] as const
      }),
    )
    const bySegment = new Map(swapped)
    return replace(result, ({ renditionId, number }) => bySegment.get(`${renditionId}/${number}`))
  },
  'another rendition': async ({ video }, chance) => {
    const ids = [...video.inits.keys()]
    const taken = Math.floor(chance.between(0, ids.length))
    const [from, to] = [ids[taken], ids[(taken + 1) % ids.length]]
    const other = new Map(
      await Promise.all(
        video.segments
          .filter(({ renditionId }) => renditionId === from)
          .map(async (s) => [s.number, Buffer.from(await s.read())] as const),
      ),
    )
    return replace(video, ({ renditionId, number }) => (renditionId === to ? other.get(number) : undefined))
  },
  silence: async (victim, chance) => {
    const atS = chance.between(4, 7)
    const silent = chance.next() < 0.5 ? 'volume=0' : `volume=0:enable='between(t,${atS},${atS + 1})'`
    return encodeChanged(victim, chance, ['-af', silent, '-c:v', 'copy'], [], AUDIO_CHUNK)
  },
  'another video’s chunk': async ({ opened, other }, chance) =>
    encodeResult(opened, chance.next() < 0.5 ? VIDEO_CHUNK : AUDIO_CHUNK, other),
} satisfies { [name: string]: Attack }

/** What the worker would encode from a changed file. In one rendition alone, or in all. */
async function encodeChanged(
  { file, opened, video, audio }: Victim,
  chance: Chance,
  change: string[],
  inputs: string[] = [],
  chunk: Result['chunk'] = VIDEO_CHUNK,
): Promise<Result> {
  const changed = path.join(await newFolder(), 'changed.mkv')
  const encode = [
    '-c:a',
    'pcm_s16le',
    ...(change.includes('-c:v') ? [] : ['-c:v', 'libx264', '-preset', 'ultrafast', '-qp', '4']),
  ]
  await ffmpeg('-i', file, ...inputs, ...encode, ...change, changed)
  const result = await encodeResult(opened, chunk, await openVideo(changed))
  if (chance.next() < 0.5) return result
  const ids = [...result.inits.keys()]
  const only = ids[Math.floor(chance.between(0, ids.length))]
  const hostile = new Map(
    await Promise.all(result.segments.map(async (s) => [`${s.renditionId}/${s.number}`, await s.read()] as const)),
  )
  return replace(chunk.kind === 'video' ? video : audio, ({ renditionId, number }) =>
    renditionId === only ? hostile.get(`${renditionId}/${number}`) : undefined,
  )
}

async function replaceOne(result: Result, chance: Chance, change: (bytes: Buffer) => Buffer): Promise<Result> {
  const replaced = result.segments[Math.floor(chance.between(0, result.segments.length))]
  return replace(result, (segment, bytes) => (segment === replaced ? change(bytes) : undefined))
}

function trackOf({ opened: { plan } }: Victim) {
  if (!plan.videoTrack) throw new Error('the victim has no video track')
  return plan.videoTrack
}

function rateOf(victim: Victim): number {
  const { rateNum, rateDen } = trackOf(victim)
  return rateNum / rateDen
}

function framesBefore(victim: Victim): number {
  return CHUNK.firstSegment * trackOf(victim).gopFrames
}

function framesOf(victim: Victim): number {
  return Math.min(CHUNK.segmentCount * trackOf(victim).gopFrames, trackOf(victim).frameCount - framesBefore(victim))
}
