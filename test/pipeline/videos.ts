import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { onTestFinished } from 'vitest'
import type { Reelgate } from '../reelgate.ts'
import { readRenditions } from '../viewer.ts'

// What a viewer who may watch a video gets of it, taken apart without the service's own readers.

/** A whole rendition, decrypted. */
export type Download = {
  name: string
  kind: 'video' | 'audio'
  widthPx: number
  heightPx: number
  init: Buffer
  segments: Buffer[]
}

/** Downloads every rendition of a video, as a viewer with an OTP would. */
export async function downloadVideo(reelgate: Pick<Reelgate, 'newViewer' | 'owner'>, videoId: string): Promise<Download[]> {
  const viewer = reelgate.newViewer()
  const { playing, body } = await viewer.redeem(await reelgate.owner.issueOtp(videoId))
  if (!playing) throw new Error(`no playback: ${JSON.stringify(body)}`)
  const multivariant = await viewer.playlist('main')
  const videoRenditions = readRenditions(multivariant).map((rendition) => ({ ...rendition, kind: 'video' as const }))
  const audioRenditions = Array.from(multivariant.matchAll(/TYPE=AUDIO.*URI="([^"]+)"/g), ([, uri = '']) => ({
    uri,
    widthPx: 0,
    heightPx: 0,
    kind: 'audio' as const,
  }))
  const downloads: Download[] = []
  for (const { uri, kind, widthPx, heightPx } of [...videoRenditions, ...audioRenditions]) {
    downloads.push({ name: uri, kind, widthPx, heightPx, ...(await viewer.download(uri)) })
  }
  return downloads
}

/** What one box structure says: ISO/IEC 14496-12, only what is needed here. */
function* boxes(bytes: Buffer): Generator<{ type: string; content: Buffer }> {
  for (let at = 0; at < bytes.length; ) {
    const size = bytes.readUInt32BE(at)
    if (size < 8 || at + size > bytes.length) throw new Error(`a box of ${size} bytes at ${at} of ${bytes.length}`)
    yield { type: bytes.toString('latin1', at + 4, at + 8), content: bytes.subarray(at + 8, at + size) }
    at += size
  }
}

function getBox(bytes: Buffer, ...[type, ...inside]: string[]): Buffer {
  const found = [...boxes(bytes)].find((box) => box.type === type)
  if (!found) throw new Error(`no box ${type}`)
  return inside.length === 0 ? found.content : getBox(found.content, ...inside)
}

export type Segment = {
  sequence: number
  decodeTime: bigint /** Of each sample in decoding order. */
  presentationTimes: bigint[]
  durations: number[]
  sizesBytes: number[]
  dataBytes: number
}

/** Reads a segment of one fragment: moof and mdat. */
export function readSegment(bytes: Buffer): Segment {
  const types = [...boxes(bytes)].map(({ type }) => type)
  if (types.join() !== 'moof,mdat') throw new Error(`a segment of ${types.join()}`)
  const moof = getBox(bytes, 'moof')
  const [tfhd, tfdt, trun] = ['tfhd', 'tfdt', 'trun'].map((type) => getBox(moof, 'traf', type))
  if (!tfhd || !tfdt || !trun) throw new Error('no fragment')
  const decodeTime = tfdt.readUInt8(0) === 1 ? tfdt.readBigUInt64BE(4) : BigInt(tfdt.readUInt32BE(4))
  const defaults = readDefaults(tfhd)
  const flags = trun.readUIntBE(1, 3)
  const count = trun.readUInt32BE(4)
  let at = 8 + (flags & 0x1 ? 4 : 0) + (flags & 0x4 ? 4 : 0)
  const next = (flag: number, otherwise: number) => {
    if (!(flags & flag)) return otherwise
    at += 4
    return trun.readInt32BE(at - 4)
  }
  const segment: Segment = {
    sequence: getBox(moof, 'mfhd').readUInt32BE(4),
    decodeTime,
    presentationTimes: [],
    durations: [],
    sizesBytes: [],
    dataBytes: getBox(bytes, 'mdat').length,
  }
  let decode = decodeTime
  for (let sample = 0; sample < count; sample++) {
    const [duration, size] = [next(0x100, defaults.duration), next(0x200, defaults.size)]
    next(0x400, 0)
    segment.presentationTimes.push(decode + BigInt(next(0x800, 0)))
    segment.durations.push(duration)
    segment.sizesBytes.push(size)
    decode += BigInt(duration)
  }
  return segment
}

function readDefaults(tfhd: Buffer): { duration: number; size: number } {
  const flags = tfhd.readUIntBE(1, 3)
  let at = 8 + (flags & 0x1 ? 8 : 0) + (flags & 0x2 ? 4 : 0)
  const next = (flag: number) => {
    if (!(flags & flag)) return 0
    at += 4
    return tfhd.readUInt32BE(at - 4)
  }
  return { duration: next(0x8), size: next(0x10) }
}

/** Ticks a second of an init segment's track. */
export function readTimescale(init: Buffer): number {
  return getBox(init, 'moov', 'trak', 'mdia', 'mdhd').readUInt32BE(12)
}

/** A rendition as one file that any player reads. */
export async function writeRendition(folder: string, { name, init, segments }: Download): Promise<string> {
  const path = join(folder, `${name}.mp4`)
  await writeFile(path, Buffer.concat([init, ...segments]))
  return path
}

/** What ffmpeg decodes of a file, and every word that it says about it. */
export async function decode(path: string, ...output: string[]): Promise<{ bytes: Buffer; warnings: string }> {
  const args = ['-nostdin', '-hide_banner', '-v', 'warning', '-i', path, ...output]
  const { stdout, stderr } = await promisify(execFile)('ffmpeg', args, { encoding: 'buffer', maxBuffer: 2 ** 30 })
  return { bytes: stdout, warnings: stderr.toString() }
}

export async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-pipeline-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}
