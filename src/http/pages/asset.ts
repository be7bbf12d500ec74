import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** A file that a page of ours loads: as it is, and as the build has compressed it. */
export type Asset = { type: string; etag: string; bytes: Buffer; coded: Readonly<Partial<Record<Coding, Buffer>>> }

type Coding = 'br' | 'gzip'
/** In the order in which they are preferred. */
const CODINGS: readonly { coding: Coding; extension: string }[] = [
  { coding: 'br', extension: 'br' },
  { coding: 'gzip', extension: 'gz' },
]

const TYPES: Record<string, string> = {
  js: 'text/javascript; charset=utf-8',
  ts: 'text/plain; charset=utf-8', // declarations, to be read and copied
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  png: 'image/png',
  webp: 'image/webp',
  ico: 'image/x-icon',
  woff2: 'font/woff2',
  webmanifest: 'application/manifest+json',
  zip: 'application/zip',
}

export function readAsset(path: string): Asset {
  const bytes = readFileSync(path)
  const type = TYPES[path.split('.').at(-1) ?? ''] ?? 'application/octet-stream'
  const etag = createHash('sha256').update(bytes).digest('base64url').slice(0, 22)
  const built = CODINGS.filter(({ extension }) => existsSync(`${path}.${extension}`))
  const coded = Object.fromEntries(built.map(({ coding, extension }) => [coding, readFileSync(`${path}.${extension}`)]))
  return { type, etag, bytes, coded }
}

export function sendAsset(request: FastifyRequest, reply: FastifyReply, asset: Asset, cacheControl: string): FastifyReply {
  const { type, etag, bytes, coded } = asset
  const accepted = request.headers['accept-encoding']?.toString() ?? ''
  const coding = CODINGS.map((one) => one.coding).find((name) => coded[name] && acceptsCoding(accepted, name))
  reply.headers({
    'Cache-Control': cacheControl,
    'Content-Type': type,
    ETag: coding ? `"${etag}-${coding}"` : `"${etag}"`,
    Vary: 'Accept-Encoding',
  })
  return coding ? reply.header('Content-Encoding', coding).send(coded[coding]) : reply.send(bytes)
}

/** Whether an `Accept-Encoding` names a coding, with a weight above 0. */
export function acceptsCoding(header: string, coding: string): boolean {
  return header.split(',').some((entry) => {
    const [name = '', weight = ''] = entry.toLowerCase().split(';')
    return name.trim() === coding && !/^\s*q=0(\.0*)?\s*$/.test(weight)
  })
}
