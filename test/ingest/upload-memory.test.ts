import { createHash } from 'node:crypto'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { getStoredSource } from '../data-folder.ts'
import { anonymousMiB } from '../memory.ts'
import { startReelgate } from '../reelgate.ts'
import { BOUNDARY, formBody, uploadParts } from './raw-form.ts'

const MIB = 2 ** 20

test('E04: an upload of 300 MB goes through in constant memory, its hash right', async () => {
  const reelgate = await startReelgate()
  const upload = await reelgate.owner.credentials('A large film')
  const block = Buffer.alloc(MIB, 'Not a film, and large. ')
  const [before = Buffer.alloc(0), after = Buffer.alloc(0)] = splitAt(formBody(uploadParts(upload, '<file>')), '<file>')
  const socket = connect(Number(new URL(reelgate.url).port), '127.0.0.1')
  const answer = new Promise<string>((resolve) => socket.once('data', (bytes) => resolve(bytes.toString())))
  const length = before.length + 300 * MIB + after.length
  socket.write(
    `POST /upload HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=${BOUNDARY}\r\nContent-Length: ${length}\r\n\r\n`,
  )
  socket.write(before)
  const memoryMiB: number[] = []
  const hash = createHash('sha256')
  for (let sent = 0; sent < 300; sent++) {
    hash.update(block)
    if (!socket.write(block)) await new Promise((resolve) => socket.once('drain', resolve))
    if (sent % 5 === 0) memoryMiB.push(await anonymousMiB(reelgate.pid))
  }
  socket.write(after)
  expect(await answer).toMatch(/^HTTP\/1.1 204/)
  socket.destroy()
  memoryMiB.push(await anonymousMiB(reelgate.pid))
  const source = getStoredSource(reelgate, upload.videoId)
  expect(source.sizeBytes).toBe(300 * MIB)
  expect(source.sha256).toEqual(hash.digest())
  // What has been read is garbage that V8 collects 60 to 75 MiB at a time; a third of the file would be a buffered one.
  expect(Math.max(...memoryMiB) - (memoryMiB[0] ?? 0)).toBeLessThan(100)
})

function splitAt(body: Buffer, mark: string): Buffer[] {
  const at = body.indexOf(mark)
  return [body.subarray(0, at), body.subarray(at + mark.length)]
}
