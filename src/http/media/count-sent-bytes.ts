import type { ReadStream } from 'node:fs'
import type { FastifyReply } from 'fastify'

/**
 * Tells how much of a body of `lengthBytes` went out, once the answer has ended, however it ends. Of one that breaks off that is what
 * was handed to the network; the last of it, at most what its buffers hold, may not have arrived.
 */
export function onResponseSent(reply: FastifyReply, lengthBytes: number, tell: (sentBytes: number) => void): void {
  const { raw } = reply
  const { socket } = reply.request.raw
  const beforeBytes = socket.bytesWritten
  raw.once('close', () => tell(raw.writableFinished ? lengthBytes : Math.min(lengthBytes, socket.bytesWritten - beforeBytes)))
}

/**
 * Sends a part of a file. Where the file ends before the promised length, the connection is closed: on an open one the client would
 * wait for the rest for ever, and a cache could take the part for the whole.
 */
export function sendWhole(reply: FastifyReply, stream: ReadStream, lengthBytes: number): FastifyReply {
  stream.once('end', () => {
    if (stream.bytesRead < lengthBytes) reply.raw.destroy()
  })
  return reply.send(stream)
}
