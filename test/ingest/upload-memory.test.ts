import { createHash } from 'node:crypto'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { getStoredSource } from '../data-folder.ts'
import { anonymousMiB } from '../memory.ts'
import { startReelgate } from '../reelgate.ts'
import { rounds } from '../seeded-random.ts'
import { BOUNDARY, formBody, uploadParts } from './raw-form.ts'

const MIB = 2 ** 20

const MEBIBYTES = rounds(300, 5 * 1024)

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
  const hash = createHash('sha256')
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

function splitAt(body: Buffer, mark: string): Buffer[] {
  const at = body.indexOf(mark)
  return [body.subarray(0, at), body.subarray(at + mark.length)]
}
