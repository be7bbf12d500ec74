import type { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'

/**
 * Calls back with how many of `lengthBytes` were sent, after the response has ended in any way. When it breaks off, this is what was
 * handed to the network; the last of it, at most the size of the network's buffers, may not have arrived.
 */
export function onResponseSent(reply: FastifyReply, lengthBytes: number, onSent: (sentBytes: number) => void): void {
  const { raw } = reply
  const { socket } = reply.request.raw
  const beforeBytes = socket.bytesWritten
  raw.once('close', () => onSent(raw.writableFinished ? lengthBytes : Math.min(lengthBytes, socket.bytesWritten - beforeBytes)))
}

/**
 * Sends a part of a file. When the file ends before the promised length, the connection is closed: otherwise the client would wait for
 * the rest, and a cache could take the part for the whole.
 */
export function sendWhole(
  reply: FastifyReply,
  stream: Readable & { readonly bytesRead: number },
  lengthBytes: number,
): FastifyReply {
  stream.once('end', () => {
    if (stream.bytesRead < lengthBytes) reply.raw.destroy()
  })
  return reply.send(stream)
}
