import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { dataPaths } from '../../src/config/data-paths.ts'
import { sendCommand } from '../../src/control/socket.ts'
import { isFromThisMachine } from '../../src/http/server/from-this-machine.ts'
import { createOwner } from '../client.ts'
import { listFiles, untilFinished } from '../data-folder.ts'
import { findFreePort } from '../free-port.ts'
import type { Golden } from '../golden.ts'
import { type Reelgate, startReelgate, startSharedReelgate } from '../in-process.ts'
import { type Location, makeLocation } from '../installation-folder.ts'
import { sendRaw } from '../raw-http.ts'
import { readRows } from '../rows.ts'
import { sampleOf } from '../sample.ts'
import { newChance, rounds } from '../seeded-random.ts'

const ON = { env: { REELGATE_DEMO: 'on' } }
type Shared = Awaited<ReturnType<typeof startSharedReelgate>>
const HOMEPAGE = '/api/site/homepage_video'

/** A stopped installation with a finished demo, which tests copy. Its first start was killed. */
let withDemo: Golden & Location
beforeAll(async () => {
  withDemo = await makeDemoAfterKills()
})
afterAll(() => withDemo.remove())

test('a first start says where its demo video plays, and its page says immediately that it is being made, or shows it', async () => {
  const { url, output } = await startReelgate(ON)
  const page = await fetch(`${url}/demo`)
  expect(output()).toContain(`A demo video     ${url}/demo  (on this machine only)`)
  expect(page.status).toBe(200)
  expect(page.headers.get('cache-control')).toBe('no-store')
  expect(await page.text()).toMatch(/The demo video is being made|<iframe src="\/player\/\?otp=/)
})

describe('an installation with its demo video', () => {
  let reelgate: Shared
  beforeAll(async () => {
    reelgate = await startSharedReelgate({ ...ON, copyOf: withDemo })
  })
  afterAll(() => reelgate.remove())

  test('has it in an account of its own: twenty seconds of 240p with audio', async () => {
    const [video] = readRows(
      reelgate,
      'select name, duration_s, plan from video join account on account.id = account_id join generation on video_id = video.id',
    )
    expect(video).toMatchObject({ name: 'Demo', duration_s: expect.closeTo(20, 0) })
    const { videoTrack, audioTrack } = JSON.parse(String(video?.plan))
    expect(videoTrack.renditions).toMatchObject([{ widthPx: 426, heightPx: 240 }])
    expect(audioTrack).toBeDefined()
  })

  test('the contract’s demo operation returns a new OTP of the demo each time, which one browser can play', async () => {
    const first = await untilPlayable(reelgate)
    const second = await untilPlayable(reelgate)
    expect(first.otp).toMatch(/^[A-Za-z0-9]{64}$/)
    expect(second.otp).not.toBe(first.otp)
    expect((await reelgate.newViewer().redeem(first.otp, { videoId: first.videoId })).playing).toBe(true)
    expect((await reelgate.newViewer().redeem(first.otp, { videoId: first.videoId })).playing).toBe(false)
  })

  test.each([
    'Forwarded: for=192.0.2.1',
    'X-Forwarded-For: 127.0.0.1',
    'x-forwarded-proto: https',
    'X-Forwarded-Host: localhost',
    'X-Forwarded-Server: here',
    'Via: 1.1 proxy',
    'X-Real-IP: 127.0.0.1',
    'CF-Connecting-IP: 127.0.0.1',
  ])('what came through a proxy (%s) finds nothing', async (header) => {
    await untilPlayable(reelgate)
    for (const path of ['/demo', '/demo/', HOMEPAGE])
      expect(await ask(reelgate, path, header)).toEqual({ status: 404, code: 'not-found' })
  })

  test.each([
    'video.example.org',
    '192.0.2.1',
    'localhost.example.org',
    '127.0.0.1.example.org',
    '127.example.org',
    '0.0.0.0',
    '[::2]',
    '',
  ])('under the name "%s", which another site may point here, nothing is found', async (host) => {
    await untilPlayable(reelgate)
    const answers = [await ask(reelgate, '/demo', { host }), await ask(reelgate, HOMEPAGE, { host: `${host}:8080` })]
    for (const { status } of answers) expect([400, 404]).toContain(status)
  })

  test.each(['localhost', 'LOCALHOST:80', '127.0.0.1', '127.8.8.8:8080', '[::1]', '[::1]:8080'])(
    'under its own name "%s" this machine finds it',
    async (host) => {
      await untilPlayable(reelgate)
      expect((await ask(reelgate, '/demo', { host })).status).toBe(200)
      expect((await ask(reelgate, HOMEPAGE, { host })).status).toBe(200)
    },
  )

  test('two Host headers, or HTTP/1.0 of an unconfigured proxy, find nothing', async () => {
    await untilPlayable(reelgate)
    expect((await ask(reelgate, '/demo', 'Host: localhost')).status).not.toBe(200)
    expect((await ask(reelgate, '/demo', { version: 'HTTP/1.0' })).status).toBe(404)
    expect((await ask(reelgate, HOMEPAGE, { version: 'HTTP/1.0' })).status).toBe(404)
  })
})

test('only loopback peers count as this machine, in every form of their address', () => {
  const from = (remoteAddress: string) =>
    isFromThisMachine({ socket: { remoteAddress }, rawHeaders: ['Host', 'localhost'], httpVersion: '1.1' })
  for (const address of ['127.0.0.1', '127.255.255.254', '::1', '::ffff:127.0.0.1', '::ffff:127.255.255.254'])
    expect({ address, is: from(address) }).toEqual({ address, is: true })
  for (const address of ['128.0.0.1', '10.0.0.1', '192.168.1.5', '172.17.0.1', '0.0.0.0', ''])
    expect({ address, is: from(address) }).toEqual({ address, is: false })
  for (const address of ['::', '::2', '::ffff:10.0.0.1', 'fe80::1', 'fd00::2', '64:ff9b::7f00:1', '::127.0.0.1', '::1%eth0'])
    expect({ address, is: from(address) }).toEqual({ address, is: false })
})

const PUBLIC = { REELGATE_PUBLIC_URL: 'http://video.example.org', REELGATE_TRUSTED_PROXIES: '127.0.0.1' }

const WITHOUT: { why: string; env: Record<string, string> }[] = [
  { why: 'REELGATE_DEMO=off', env: { REELGATE_DEMO: 'off' } },
  { why: 'a public address, for a proxy is in front', env: { REELGATE_DEMO: 'on', ...PUBLIC } },
  { why: 'a trusted proxy, which is in front too', env: { REELGATE_DEMO: 'on', REELGATE_TRUSTED_PROXIES: '127.0.0.1' } },
]

test.each(sampleOf('starts without a demo', WITHOUT, 1))(
  'there is no demo with $why, and a later start without it creates none',
  async ({ env }) => {
    const PORT = String(await findFreePort())
    const here = { url: `http://127.0.0.1:${PORT}` } // the start names the public address
    const first = await startReelgate({ env: { ...env, PORT } })
    expect(first.output()).not.toMatch(/demo/i)
    expect((await ask(here, '/demo')).status).toBe(404)
    expect((await ask(here, HOMEPAGE)).status).toBe(404)
    await first.stop()
    const later = await startReelgate({ env: { ...first.env, REELGATE_DEMO: 'on' } })
    expect((await ask(later, '/demo')).status).toBe(404)
    expect(readRows(first, 'select id from video')).toEqual([])
  },
)

test('REELGATE_DEMO=off hides an existing demo, and on shows it again; the start no longer mentions it', async () => {
  const hidden = await startReelgate({ copyOf: withDemo })
  expect((await ask(hidden, '/demo')).status).toBe(404)
  expect((await ask(hidden, HOMEPAGE)).status).toBe(404)
  await hidden.stop()
  const shown = await startReelgate({ env: { ...hidden.env, ...ON.env } })
  expect((await ask(shown, '/demo')).status).toBe(200)
  expect(shown.output()).not.toMatch(/demo video/)
})

const REMOVALS = [
  {
    how: 'by its command',
    remove: async ({ cli }: Reelgate) =>
      expect(await cli('demo', 'remove', '--json')).toEqual({ code: 0, stdout: '{"removed":true}\n', stderr: '' }),
  },
  {
    how: 'through the API, with a key of its account',
    remove: async (reelgate: Reelgate, videoId: string) => {
      const account = { account: 'Demo', name: 'remover', permissions: ['editor'] }
      const key = await sendCommand(dataPaths(reelgate.dataDir).controlSocket, 'key create', account)
      await createOwner(reelgate.url, (key as { apiKey: string }).apiKey).delete([videoId])
    },
  },
]

test.each(sampleOf('removals of the demo', REMOVALS, 1))(
  'a demo removed $how is removed permanently: not shown, and not created again by the next start',
  async ({ remove }) => {
    const reelgate = await startReelgate({ ...ON, copyOf: withDemo })
    const { videoId } = await untilPlayable(reelgate)
    await remove(reelgate, videoId)
    for (const round of ['immediately', 'after the next start']) {
      expect({ round, ...(await ask(reelgate, '/demo')) }).toEqual({ round, status: 404, code: 'not-found' })
      expect({ round, ...(await ask(reelgate, HOMEPAGE)) }).toEqual({ round, status: 404, code: 'not-found' })
      await reelgate.stop()
      expect(readRows(reelgate, 'select id from video where deleted_at_s is null')).toEqual([])
      await reelgate.restart()
    }
    expect(reelgate.output()).not.toMatch(/demo/i)
    expect(await reelgate.cli('demo', 'remove')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('There is no demo video here'),
    })
  },
)

test('I10: after a kill at any moment of the first start, the next ones have one demo and one owner’s account, and the video is complete', async () => {
  await expectOneDemo(withDemo)
  for (let round = 1; round < rounds(1, 30); round++) {
    const another = await makeDemoAfterKills()
    await expectOneDemo(another)
    await another.remove()
  }
}, 3_600_000)

const chance = newChance('demo video')

async function makeDemoAfterKills(): Promise<Golden & Location> {
  const location = await makeLocation()
  // From the middle of the start to the middle of the encode; in the long run twice, since what mends may be cut off as well.
  for (let kill = 0; kill < rounds(1, 2); kill++) await killedStart(location, chance.between(200, rounds(2_000, 4_000)))
  const reelgate = await startSharedReelgate({ env: { ...location.env, ...ON.env } })
  const { videoId } = await untilPlayable(reelgate)
  await untilFinished(location, videoId)
  await reelgate.remove()
  return { ...location, owner: { apiKey: '' }, videoId }
}

async function expectOneDemo(reelgate: Golden): Promise<void> {
  expect(readRows(reelgate, 'select name, video_count from account order by name')).toEqual([
    { name: 'Demo', video_count: 1 },
    { name: 'owner', video_count: 0 },
  ])
  expect(readRows(reelgate, 'select id from video')).toEqual([{ id: reelgate.videoId }])
  const sources = readRows<{ file: string }>(reelgate, 'select file from source')
  expect(sources).toHaveLength(1)
  expect(await listFiles(reelgate, 'sources')).toContain(sources[0]?.file) // what a kill left next to it goes with the next sweep
}

async function killedStart(location: Location, afterMs: number): Promise<void> {
  const main = join(import.meta.dirname, '../../bin/main.js')
  const env = { PATH: process.env.PATH ?? '', ...location.env, PORT: '0' }
  const child = spawn(process.execPath, [main, 'serve'], { env, stdio: 'ignore' })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  await pause(afterMs)
  child.kill('SIGKILL')
  await ended
}

async function untilPlayable({ url }: Reelgate): Promise<{ otp: string; videoId: string }> {
  for (;;) {
    const response = await fetch(`${url}${HOMEPAGE}`)
    if (response.status === 200) {
      const { otp, playbackInfo } = (await response.json()) as { otp: string; playbackInfo: string }
      return { otp, ...JSON.parse(Buffer.from(playbackInfo, 'base64').toString()) }
    }
    await pause(100)
  }
}

/** Asks with one more header, under another Host, or in another version of HTTP. */
async function ask({ url }: { url: string }, path: string, how: string | { host?: string; version?: string } = {}) {
  const { status, text } = await (typeof how === 'string'
    ? sendRaw(url, `GET ${path}`, [how])
    : sendRaw(url, `GET ${path}`, [], '', how))
  return status === 404 ? { status, code: JSON.parse(text).code } : { status }
}
