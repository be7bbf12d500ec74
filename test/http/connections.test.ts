import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { startReelgate } from '../in-process.ts'

test('U17, U23: bodies and forms that trickle in are refused within a minute, while others are answered as ever', async () => {
  const { url, owner } = await startReelgate()
  const slow = await openSockets(url, 200)
  const form = slow.pop()
  const ends = [...slow, form ?? expect.fail()].map((socket) => new Promise((resolve) => socket.once('close', resolve))) // also after a reset
  const head = `POST /v2/videos HTTP/1.1\r\nHost: ${new URL(url).host}\r\nContent-Type: application/x-www-form-urlencoded\r\n`
  for (const socket of slow) socket.write(`${head}Content-Length: 200000\r\n\r\nclient`)
  form?.write(
    `POST /upload HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 200000\r\n\r\n--b\r\n` +
      'Content-Disposition: form-data; name="policy"\r\n\r\n',
  )
  const answers = Promise.all([slow[0], form].map(answerOf))
  const trickle = setInterval(() => {
    for (const socket of [...slow, form]) socket?.write('S')
  }, 5_000)
  onTestFinished(() => clearInterval(trickle))
  for (let asked = 0; asked < 50; asked++) expect((await owner.list()).count).toBe(0)
  const [body, upload] = await answers
  expect(body).toMatch(/^HTTP\/1\.1 408 .*\{"error":"The body did not arrive within 30 seconds/s)
  expect(upload).toMatch(/^HTTP\/1\.1 408 .*<Code>RequestTimeout<\/Code>/s)
  await Promise.all(ends)
  expect((await owner.list()).count).toBe(0)
}, 120_000)

test('U18: an address has a bounded number of connections; one more is asked to come back, and other addresses are answered', async () => {
  const { url, owner } = await startReelgate()
  const idle: Socket[] = []
  let refusal: string | undefined
  // On a slow machine the first ones have timed out before the last ones are open, so they are counted until one is refused.
  while (refusal === undefined && idle.length < 3 * 4_096) {
    for (const socket of await openSockets(url, 256, '127.0.0.2')) {
      idle.push(socket)
      socket.on('data', (bytes) => {
        if (String(bytes).startsWith('HTTP/1.1 503')) refusal ??= String(bytes)
      })
    }
    await setImmediate()
  }
  expect(refusal).toMatch(/\r\nRetry-After: 5\r\n/)
  expect(idle.length).toBeGreaterThan(4_096)
  expect((await owner.list()).count).toBe(0)

  for (const socket of idle) socket.destroy()
  await expect
    .poll(async () => {
      const [again] = await openSockets(url, 1, '127.0.0.2')
      again?.write('GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
      return answerOf(again)
    })
    .toMatch(/^HTTP\/1\.1 200/)
})

test('F-100: requests that a client sends ahead are answered in order and entire', async () => {
  const { url } = await startReelgate()
  const sizes = ['/v2/api.js', '/healthz', '/v2/player.js', '/v2/reelgate.d.ts']
  const latin1 = async (path: string) => Buffer.from(await (await fetch(url + path)).arrayBuffer()).toString('latin1')
  const paths = new Map(await Promise.all(sizes.map(async (path) => [await latin1(path), path] as const)))
  const ahead = [...sizes, ...sizes, ...sizes, ...sizes, '/healthz']
  const [socket] = await openSockets(url, 1)
  const requests = ahead.map((path) => `GET ${path} HTTP/1.1\r\nHost: x\r\n`)
  socket?.write(`${requests.join('\r\n')}Connection: close\r\n\r\n`)
  const received = Buffer.concat(await Array.fromAsync<Buffer>(socket ?? [])).toString('latin1')
  const heads = received.matchAll(/HTTP\/1.1 200.*?\r\ncontent-length: (\d+)\r\n.*?\r\n\r\n/gis)
  const bodies = Array.from(heads, ({ index, 0: { length }, 1: size }) => received.substr(index + length, Number(size)))
  expect(bodies.map((body) => paths.get(body))).toEqual(ahead)
})

test('F-100: what a client sends ahead is begun once the response before is sent, and with 65 requests waiting the connection ends', async () => {
  const { url, owner } = await startReelgate()
  const key = `Authorization: Apisecret ${owner.apiKey}\r\n`
  const [socket] = await openSockets(url, 1)
  const ended = socket && once(socket, 'close')
  const upload = (title: number) => `PUT /api/videos?title=${title} HTTP/1.1\r\nHost: x\r\n${key}\r\n`
  const uploads = Array.from({ length: 65 }, (_, title) => upload(title))
  // A stream of events, which does not end.
  socket?.write(`GET /api/events HTTP/1.1\r\nHost: x\r\n${key}\r\n${uploads.slice(0, 64).join('')}`)
  await answerOf(socket)
  for (let asked = 0; asked < 20; asked++) expect((await owner.list()).count).toBe(0)
  expect(socket?.destroyed).toBe(false)
  socket?.write(`${uploads[64]}`)
  await ended
  expect((await owner.list()).count).toBe(0)
})

async function openSockets(url: string, count: number, from = '127.0.0.1'): Promise<Socket[]> {
  const { hostname, port } = new URL(url)
  const sockets = Array.from({ length: count }, () => connect({ host: hostname, port: Number(port), localAddress: from }))
  for (const socket of sockets) socket.on('error', () => undefined) // cut off on purpose
  onTestFinished(() => sockets.forEach((socket) => void socket.destroy()))
  await Promise.all(sockets.map((socket) => once(socket, 'connect')))
  return sockets
}

async function answerOf(socket: Socket | undefined): Promise<string> {
  if (!socket) throw new Error('no connection was made')
  const [bytes] = await once(socket, 'data')
  return String(bytes)
}
