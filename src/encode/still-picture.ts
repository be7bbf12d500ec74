import { createCipheriv, randomBytes } from 'node:crypto'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Failure } from '../errors.ts'
import { collect, type MediaEnd, runMedia, type Sandbox, type SealedSource } from './sandbox.ts'

// By what a file is, never by what it is called. SVG is not here: it is a program that draws.
const KINDS = [
  { demuxer: 'png_pipe', begins: /^\x89PNG\r\n/ },
  { demuxer: 'jpeg_pipe', begins: /^\xff\xd8\xff/ },
  { demuxer: 'webp_pipe', begins: /^RIFF.{4}WEBP/s },
  { demuxer: 'gif_pipe', begins: /^GIF8[79]a/ },
]
/** Tried in turn: a PNG of the last one is never longer than is allowed. */
const BOXES_PX = [960, 360]
const MAX_PNG_BYTES = 512 * 1024
const LIMITS = { cpuS: 20, wallS: 20 }

/**
 * Draws a picture anew as a PNG that is small enough to be sent inside an answer: its first frame, without what else the file holds.
 * @param tmp folder where a sealed copy lies meanwhile
 * @returns at most 512 KiB, its longer side at most 960 pixels
 * @throws Failure `invalid` when it is no PNG, JPEG, WebP or GIF, cannot be read, or is too large; the signal's reason
 */
export async function redrawPicture(sandbox: Sandbox, tmp: string, bytes: Buffer, signal?: AbortSignal): Promise<Buffer> {
  const head = bytes.subarray(0, 16).toString('latin1')
  const kind = KINDS.find(({ begins }) => begins.test(head))
  if (!kind) throw new Failure('invalid', 'The file is not a picture that can be shown: use PNG, JPEG, WebP or GIF.')
  const source = await sealAway(tmp, bytes)
  try {
    for (const boxPx of BOXES_PX) {
      const png = await draw(sandbox, source, kind.demuxer, boxPx, signal)
      if (png.length <= MAX_PNG_BYTES) return png
    }
    throw new Failure('invalid', 'The picture is too large to be shown.')
  } finally {
    await rm(source.path, { force: true })
  }
}

async function draw(
  sandbox: Sandbox,
  source: SealedSource,
  demuxer: string,
  boxPx: number,
  signal?: AbortSignal,
): Promise<Buffer> {
  const png = collect(boxPx * boxPx * 4 + 2 ** 16)
  const scale = `scale=w='min(iw,${boxPx})':h='min(ih,${boxPx})':force_original_aspect_ratio=decrease`
  const end: MediaEnd = await runMedia(sandbox, {
    tool: 'ffmpeg',
    media: 'picture',
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
  if (end.exitCode !== 0 || png.bytes().length === 0)
    throw new Failure('invalid', 'The picture cannot be read: it is damaged, or of too many pixels.')
  return png.bytes()
}

/** What the sandbox reads is sealed, like every source. */
async function sealAway(tmp: string, bytes: Buffer): Promise<SealedSource> {
  const [key, iv] = [randomBytes(16), randomBytes(16)]
  const cipher = createCipheriv('aes-128-cbc', key, iv)
  const path = join(tmp, randomBytes(16).toString('hex'))
  await writeFile(path, Buffer.concat([cipher.update(bytes), cipher.final()]), { flag: 'wx', mode: 0o600 })
  return { path, keyHex: key.toString('hex'), ivHex: iv.toString('hex'), sizeBytes: bytes.length }
}
