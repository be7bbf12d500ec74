import { randomBytes } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { newSeal, SealingStream } from '../crypto/sealed-file.ts'
import { Failure } from '../errors.ts'
import type { Sandbox } from '../sandbox/bubblewrap.ts'
import { collect } from '../sandbox/child-process.ts'
import type { MediaEnd, SealedSource } from '../sandbox/media-run.ts'
import { runMedia } from '../sandbox/run.ts'
import { ON_BLACK } from './color.ts'
import { jpegArgs, MAX_JPEG_BYTES, POSTER_BOXES, type Poster } from './extract-posters.ts'

// Detected by content, never by file name. SVG is not accepted: it is a program that draws.
const FORMATS = {
  PNG: { demuxer: 'png_pipe', signature: /^\x89PNG\r\n/ },
  JPEG: { demuxer: 'jpeg_pipe', signature: /^\xff\xd8\xff/ },
  WebP: { demuxer: 'webp_pipe', signature: /^RIFF.{4}WEBP/s },
  GIF: { demuxer: 'gif_pipe', signature: /^GIF8[79]a/ },
} as const
const HEAD_BYTES = 16
/** Tried in this order: a PNG of the last size never exceeds the limit. */
const PNG_SIDES_PX = [960, 360]
const MAX_PNG_BYTES = 512 * 1024
const LIMITS = { cpuS: 20, wallS: 20 }
const UNREADABLE = 'The image cannot be read: it is damaged, or has too many pixels.'

/** An uploaded image, encrypted on disk while it is processed. */
export type SealedImage = { source: SealedSource; path: string; head: string }

/** Encrypts an image to a file in constant memory. @param tmp folder of the file until `removeImage` */
export async function sealImage(tmp: string, bytes: Readable): Promise<SealedImage> {
  const seal = newSeal()
  const sealing = new SealingStream(seal)
  const path = join(tmp, randomBytes(16).toString('hex'))
  let head: Buffer = Buffer.alloc(0)
  async function* headed(): AsyncGenerator<Buffer> {
    for await (const part of bytes) {
      if (head.length < HEAD_BYTES) head = Buffer.concat([head, part]).subarray(0, HEAD_BYTES)
      yield part
    }
  }
  try {
    await pipeline(Readable.from(headed()), sealing, createWriteStream(path, { flags: 'wx', mode: 0o600 }))
  } catch (error) {
    await rm(path, { force: true })
    throw error
  }
  const { sizeBytes } = sealing.sealed
  const keys = { keyHex: seal.key.toString('hex'), ivHex: seal.iv.toString('hex') }
  const source: SealedSource = { ...keys, sizeBytes, withLocalCopy: (use) => use(path) }
  return { source, path, head: head.toString('latin1') }
}

export async function removeImage({ path }: SealedImage): Promise<void> {
  await rm(path, { force: true })
}

/**
 * Re-encodes an image as a PNG that is small enough to be sent inside a response: its first frame, without the rest of the file.
 * @param tmp folder for an encrypted copy meanwhile
 * @returns at most 512 KiB, its longer side at most 960 pixels
 * @throws Failure `invalid` when it is no PNG, JPEG, WebP or GIF, cannot be read, or is too large; the signal's reason
 */
export async function reencodeImage(sandbox: Sandbox, tmp: string, bytes: Buffer, signal?: AbortSignal): Promise<Buffer> {
  const image = await sealImage(tmp, Readable.from([bytes]))
  try {
    const demuxer = chooseDemuxer(image, ['PNG', 'JPEG', 'WebP', 'GIF'])
    for (const boxPx of PNG_SIDES_PX) {
      const png = await encodePng(sandbox, { source: image.source, demuxer, boxPx, signal })
      if (png.length <= MAX_PNG_BYTES) return png
    }
    throw new Failure('invalid', 'The image is too large to be shown.')
  } finally {
    await removeImage(image)
  }
}

/**
 * Renders the sizes of a poster: JPEGs that fit their boxes, keep the aspect ratio, are never larger than the image, and contain nothing
 * else of its file. Transparent areas become black, as around a video.
 * @throws Failure `invalid` when it is no PNG, JPEG or WebP, or cannot be read
 */
export async function renderPosterSizes(sandbox: Sandbox, image: SealedImage): Promise<Poster[]> {
  const demuxer = chooseDemuxer(image, ['PNG', 'JPEG', 'WebP'])
  const jpegs = POSTER_BOXES.map(() => collect(MAX_JPEG_BYTES))
  const chains = POSTER_BOXES.map(
    ({ widthPx, heightPx }, i) =>
      `[s${i}]scale=w='min(iw,${widthPx})':h='min(ih,${heightPx})':force_original_aspect_ratio=decrease,setsar=1,${ON_BLACK},format=yuvj420p[p${i}]`,
  )
  const end = await runMedia(sandbox, {
    tool: 'ffmpeg',
    media: 'image',
    source: image.source,
    inputArgs: ['-f', demuxer],
    outputArgs: [
      ...['-filter_complex', [`[0:v:0]split=2${POSTER_BOXES.map((_, i) => `[s${i}]`).join('')}`, ...chains].join(';')],
      ...POSTER_BOXES.flatMap((_, i) => jpegArgs(i)),
    ],
    pipes: jpegs.map(({ reader }) => reader),
    limits: LIMITS,
  })
  return jpegs.map(({ bytes }) => {
    const jpeg = bytes()
    if (end.exitCode !== 0 || jpeg.length === 0) throw new Failure('invalid', UNREADABLE)
    return { ...readJpegSize(jpeg), jpeg }
  })
}

function chooseDemuxer({ head }: SealedImage, allowed: readonly (keyof typeof FORMATS)[]): string {
  const format = allowed.map((name) => FORMATS[name]).find(({ signature }) => signature.test(head))
  if (format) return format.demuxer
  const names = `${allowed.slice(0, -1).join(', ')} or ${allowed.at(-1)}`
  throw new Failure('invalid', `The file is not an image that can be shown: use ${names}.`)
}

/** Reads the frame header (ITU T.81, section B.2.2) of a JPEG that ffmpeg made. */
function readJpegSize(jpeg: Buffer): { widthPx: number; heightPx: number } {
  for (let at = 2; at + 9 < jpeg.length; at += 2 + jpeg.readUInt16BE(at + 2)) {
    const isFrame = jpeg[at] === 0xff && (jpeg[at + 1] === 0xc0 || jpeg[at + 1] === 0xc2)
    if (isFrame) return { heightPx: jpeg.readUInt16BE(at + 5), widthPx: jpeg.readUInt16BE(at + 7) }
  }
  throw new Error('a JPEG without a frame')
}

type PngRequest = { source: SealedSource; demuxer: string; boxPx: number; signal?: AbortSignal }

async function encodePng(sandbox: Sandbox, { source, demuxer, boxPx, signal }: PngRequest): Promise<Buffer> {
  const png = collect(boxPx * boxPx * 4 + 2 ** 16)
  const scale = `scale=w='min(iw,${boxPx})':h='min(ih,${boxPx})':force_original_aspect_ratio=decrease`
  const end: MediaEnd = await runMedia(sandbox, {
    tool: 'ffmpeg',
    media: 'image',
    source,
    inputArgs: ['-f', demuxer],
    outputArgs: [
      ...['-map', '0:v:0', '-frames:v', '1', '-vf', `${scale},setsar=1,format=rgba`, '-map_metadata', '-1'],
      ...['-c:v', 'png', '-f', 'image2pipe', 'pipe:3'],
    ],
    pipes: [png.reader],
    limits: LIMITS,
    signal,
  })
  if (end.exitCode !== 0 || png.bytes().length === 0) throw new Failure('invalid', UNREADABLE)
  return png.bytes()
}
