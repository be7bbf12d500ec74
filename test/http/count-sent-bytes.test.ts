import { mkdtemp, open, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import Fastify from 'fastify'
import { expect, onTestFinished, test } from 'vitest'
import { onResponseSent, sendWhole } from '../../src/http/media/count-sent-bytes.ts'

const MIB = 2 ** 20
const PART = Buffer.alloc(256 * 1024)

/** A server that sends 64 MiB in parts as a video does, and says how much of it went out. */
async function startSender() {
  const reported = Promise.withResolvers<number>()
  const app = Fastify()
  app.get('/', (_request, reply) => {
    onResponseSent(reply, 64 * MIB, reported.resolve)
    return reply.header('Content-Length', 64 * MIB).send(Readable.from(Array.from({ length: 256 }, () => PART)))
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  onTestFinished(() => app.close())
  return { port: (app.server.address() as AddressInfo).port, reported: reported.promise }
}

test('of a download that breaks off, what went out is counted: no less than arrived, and no more than buffers hold', async () => {
  const { port, reported } = await startSender()
  const socket = connect(port, '127.0.0.1')
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  let received = 0
  for await (const bytes of socket) {
    received += bytes.length
    if (received > 20 * MIB) break // which destroys it
  }
  const sent = await reported
  expect(sent).toBeGreaterThan(received - 1000) // its headers
  expect(sent).toBeLessThan(received + 24 * MIB)
})

test('of a download that ends, all is counted', async () => {
  const { port, reported } = await startSender()
  const answer = await fetch(`http://127.0.0.1:${port}/`)
  expect((await answer.arrayBuffer()).byteLength).toBe(64 * MIB)
  expect(await reported).toBe(64 * MIB)
})

test('F-41: a file that has become shorter ends the connection, so that no client takes a part for the whole', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const path = join(folder, 'segment')
  await writeFile(path, PART)
  const app = Fastify()
  app.get('/', async (_request, reply) => {
    const file = await open(path)
    reply.header('Content-Length', 2 * PART.length)
    return sendWhole(reply, file.createReadStream({ start: 0, end: 2 * PART.length - 1 }), 2 * PART.length)
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  onTestFinished(() => app.close())
  const answer = await fetch(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}/`)
  await expect(answer.arrayBuffer()).rejects.toThrow('terminated')
})
