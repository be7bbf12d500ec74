import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { createFileHash } from '../../src/crypto/sealed-file.ts'
import { getStoredSource } from '../data-folder.ts'
import { anonymousMiB } from '../memory.ts'
import { startReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { rounds } from '../seeded-random.ts'
import { beginImport } from './import-host.ts'
import { BOUNDARY, formBody, uploadParts } from './raw-form.ts'

const MIB = 2 ** 20

const MEBIBYTES = rounds(64, 5 * 1024)

test(`E04: an upload of ${MEBIBYTES} MiB takes at most 50 MB of memory while it comes in, its hash right`, async () => {
  const reelgate = await startReelgate()
  const upload = await reelgate.owner.credentials('A large video')
  const block = Buffer.alloc(MIB, 'Not a video, and large. ')
  const [before = Buffer.alloc(0), after = Buffer.alloc(0)] = splitAt(formBody(uploadParts(upload, '<file>')), '<file>')
  const socket = connect(Number(new URL(reelgate.url).port), '127.0.0.1')
  const answer = new Promise<string>((resolve) => socket.once('data', (bytes) => resolve(bytes.toString())))
  const length = before.length + MEBIBYTES * MIB + after.length
  const memoryMiB = [await anonymousMiB(reelgate.pid)]
  socket.write(
    `POST /upload HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=${BOUNDARY}\r\nContent-Length: ${length}\r\n\r\n`,
  )
  socket.write(before)
  const hash = createFileHash()
  for (let sent = 0; sent < MEBIBYTES; sent++) {
    hash.update(block)
    if (!socket.write(block)) await new Promise((resolve) => socket.once('drain', resolve))
    if (sent % 5 === 0) memoryMiB.push(await anonymousMiB(reelgate.pid))
  }
  socket.write(after)
  expect(await answer).toMatch(/^HTTP\/1.1 204/)
  socket.destroy()
  memoryMiB.push(await anonymousMiB(reelgate.pid))
  const source = getStoredSource(reelgate, upload.videoId)
  expect(source.sizeBytes).toBe(MEBIBYTES * MIB)
  expect(source.sha256).toEqual(hash.digest())
  expect(Math.max(...memoryMiB) - (memoryMiB[0] ?? 0)).toBeLessThan(50e6 / MIB)
}, 900_000)

const UPLOADS = rounds(20, 200)
const UPLOAD_MIB = rounds(6, 8)

test(`E04, F-270: ${UPLOADS} uploads and ten imports at a time take less than 512 MB of memory, and all of them arrive`, async () => {
  const hosts = await Promise.all(Array.from({ length: 5 }, startImportHost))
  const reelgate = await startReelgate({ env: { REELGATE_OUTBOUND_ALLOW: hosts.map(({ host }) => host).join() } })
  const { owner } = reelgate
  const imported = await Promise.all(
    [...hosts, ...hosts].map(({ host }, n) => beginImport(owner, `http://${host}/${n}`, `Import ${n}`)),
  )
  const block = Buffer.alloc(MIB / 4, 'Not a video, and large. ')
  const uploads = await Promise.all(
    Array.from({ length: UPLOADS }, async (_, n) => {
      const upload = await owner.credentials(`Upload ${n}`)
      const [before = Buffer.alloc(0), after = Buffer.alloc(0)] = splitAt(formBody(uploadParts(upload, '<file>')), '<file>')
      const socket = connect(Number(new URL(reelgate.url).port), '127.0.0.1')
      const answer = once(socket, 'data').then(([bytes]) => String(bytes))
      const length = before.length + UPLOAD_MIB * MIB + after.length
      socket.write(
        `POST /upload HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=${BOUNDARY}\r\nContent-Length: ${length}\r\n\r\n`,
      )
      socket.write(before)
      return { socket, after, answer }
    }),
  )
  const beforeMiB = await anonymousMiB(reelgate.pid)
  let mostMiB = 0
  for (let sent = 0; sent < UPLOAD_MIB * 4; sent++) {
    await Promise.all(uploads.map(({ socket }) => socket.write(block) || once(socket, 'drain')))
    mostMiB = Math.max(mostMiB, await anonymousMiB(reelgate.pid))
  }
  for (const { socket, after } of uploads) socket.write(after)
  for (const { answer } of uploads) expect(await answer).toMatch(/^HTTP\/1.1 204/)
  for (const { socket } of uploads) socket.destroy()
  const stored = () => readRows(reelgate, 'select 1 from source where size_bytes = ?', UPLOAD_MIB * MIB).length
  await expect.poll(stored).toBe(UPLOADS + imported.length)
  mostMiB = Math.max(mostMiB, await anonymousMiB(reelgate.pid))
  process.stderr.write(`${UPLOADS} uploads and ${imported.length} imports: ${Math.round(mostMiB)} MiB\n`)
  expect(mostMiB).toBeLessThan(512e6 / MIB)
  const sentMiB = (UPLOADS + imported.length) * UPLOAD_MIB
  expect(mostMiB - beforeMiB, 'they are not held in memory').toBeLessThan(0.75 * sentMiB)
}, 900_000)

/** A host with files of as many MiB as the uploads. */
async function startImportHost(): Promise<{ host: string }> {
  const file = Buffer.alloc(UPLOAD_MIB * MIB, 'Not a video either. ')
  const server = createServer((_, response) => response.end(file)).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return { host: `127.0.0.1:${(server.address() as AddressInfo).port}` }
}

function splitAt(body: Buffer, mark: string): Buffer[] {
  const at = body.indexOf(mark)
  return [body.subarray(0, at), body.subarray(at + mark.length)]
}
