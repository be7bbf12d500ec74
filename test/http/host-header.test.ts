import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'

let reelgate: Reelgate & { remove(): Promise<void> }
beforeAll(async () => {
  reelgate = await startSharedReelgate()
})
afterAll(() => reelgate.remove())

async function sendBytes(bytes: string): Promise<string> {
  const { hostname, port } = new URL(reelgate.url)
  const socket = connect(Number(port), hostname)
  socket.write(bytes)
  return text(socket)
}

const TARGETS = [
  ...[
    'GET /',
    'GET /healthz',
    'GET /api/videos',
    'GET /api/nothing',
    'POST /v2/otp',
    'GET /console/api/sign-in',
    'GET /console/',
  ],
  ...['POST /play/redeem', 'GET /media/nothing', 'POST /upload', 'GET /poster/nothing.jpg', 'GET /nothing', 'GET /docs/api'],
]

test.each(TARGETS)('D15: %s with two hosts, or with none, is 400, whatever they are', async (target) => {
  const { host } = new URL(reelgate.url)
  const two = [
    [`Host: ${host}`, `Host: ${host}`],
    [`Host: ${host}`, 'hOST: evil.example'],
    ['Host: evil.example', 'X-Other: 1', `host: ${host}`],
  ]
  for (const lines of [...two, []]) {
    const answer = await sendBytes([`${target} HTTP/1.1`, 'Connection: close', ...lines, '', ''].join('\r\n'))
    expect(answer).toMatch(/^HTTP\/1\.1 400 /)
  }
})

test('D15: HTTP/1.0 without a host opens the health checks of a load balancer, and nothing else', async () => {
  expect(await sendBytes('GET /healthz HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /)
  expect(await sendBytes('GET /api/meta HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 /)
  expect(await sendBytes('GET /healthz HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 /)
})

test('D16: HTTP/0.9 is refused', async () => {
  for (const line of ['GET /healthz', 'GET /healthz HTTP/0.9', 'GET /nothing', 'GET /api/videos HTTP/0.9'])
    expect(await sendBytes(`${line}\r\n\r\n`), line).toMatch(/^HTTP\/1\.1 400 /)
})
