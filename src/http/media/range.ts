import type { FastifyReply } from 'fastify'

/** A part of a file to send, both ends inclusive. */
type ByteRange = { first: number; last: number }

/**
 * Reads a Range header (RFC 9110, section 14). One range is served; several ranges, or an unknown unit, get the whole file, as
 * the standard allows, so a request for a thousand ranges costs no more than one.
 * @returns undefined for the whole file, `unsatisfiable` for a 416
 */
export function readRange(header: string | undefined, sizeBytes: number): ByteRange | undefined | 'unsatisfiable' {
  const [, from = '', to = ''] = /^bytes=(\d*)-(\d*)$/.exec(header ?? '') ?? []
  if (from === '' && to === '') return undefined
  if (from === '') return Number(to) === 0 ? 'unsatisfiable' : { first: Math.max(0, sizeBytes - Number(to)), last: sizeBytes - 1 }
  if (to !== '' && Number(to) < Number(from)) return undefined
  if (Number(from) >= sizeBytes) return 'unsatisfiable'
  return { first: Number(from), last: to === '' ? sizeBytes - 1 : Math.min(Number(to), sizeBytes - 1) }
}

/** Gives a response its status for the range that was asked for, and says which part of the file it has. */
export function describePart(reply: FastifyReply, range: ReturnType<typeof readRange>, sizeBytes: number): FastifyReply {
  if (range === 'unsatisfiable') return reply.code(416).header('Content-Range', `bytes */${sizeBytes}`)
  if (!range) return reply.header('Content-Length', sizeBytes)
  const { first, last } = range
  reply.code(206).header('Content-Range', `bytes ${first}-${last}/${sizeBytes}`)
  return reply.header('Content-Length', last - first + 1)
}
