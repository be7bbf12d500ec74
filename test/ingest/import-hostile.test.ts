import { readFile, writeFile } from 'node:fs/promises'
import type { RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { createServer as createSocketServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { listFiles } from '../data-folder.ts'
import { startSharedReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { AUTHORITY, EXPIRED, KEY, OF_ANOTHER_HOST, SELF_SIGNED, VALID } from '../ssrf/certificates.ts'
import { openSharedWorld } from '../ssrf/network-namespace.ts'
import { makeVideo } from '../videos.ts'
import {
  beginImport,
  failureOf,
  failuresOf,
  hostsIn,
  LETTER,
  LETTER_RECEIVED,
  type NewHost,
  outcomeOf,
  sendFile,
} from './import-host.ts'

// Addresses that want something else of the server than a video. It runs unchanged in a world where every private place has a canary.

let world: Awaited<ReturnType<typeof openSharedWorld>>
let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let canaries: { received(): string[] }
let video: Buffer
let slow: { id: string; url: string; isOpen(): boolean }
let newHost: NewHost

/** Of this machine, its network and its cloud; each with canaries on 80 and 443. */
const PRIVATE = [
  ...['127.0.0.1', '127.9.9.9', '10.0.0.1', '172.16.0.1', '172.31.255.254', '192.168.0.1', '100.64.0.1'],
  ...['100.100.100.200', '169.254.169.254', '192.0.0.1', '198.18.0.1', '198.19.255.254', '240.0.0.1'],
  ...['::1', 'fd00::1', 'fd00:ec2::254', '2002:7f00:1::', '64:ff9b::7f00:1'],
]
/** No listener is possible there, or only by another name; nothing is requested. */
const NOT_THERE = ['0.0.0.0', 'fe80::1', '224.0.0.1', '255.255.255.255', '::', '::ffff:127.0.0.1', '::ffff:7f00:1', '::127.0.0.1']
const PROXY = '10.9.9.9'
const MAX_BYTES = 4e6

beforeAll(async () => {
  world = await openSharedWorld()
  newHost = hostsIn(world, '8.8.2')
  canaries = await world.canaries(...PRIVATE, `${PROXY}#3128`, '127.0.0.1#22#25#6379#11211#5432')
  const options = await world.around({
    REELGATE_UPLOAD_MAX_BYTES: String(MAX_BYTES),
    // S27: nothing of it may be used.
    ...Object.fromEntries(
      ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy'].map((name) => [name, `http://${PROXY}:3128`]),
    ),
    NODE_USE_ENV_PROXY: '1',
    NODE_EXTRA_CA_CERTS: join(world.folder, 'authority.pem'),
  })
  await writeFile(join(world.folder, 'authority.pem'), AUTHORITY)
  reelgate = await startSharedReelgate(options)
  video = await readFile(await makeVideo())
  slow = await beginSlowImport()
})
afterAll(async () => {
  await reelgate?.remove()
  await world?.end()
})

/** Its minute goes by while the other tests run; the last one looks what became of it. */
async function beginSlowImport(): Promise<typeof slow> {
  let open = 0
  const host = await newHost((_request, response) => {
    open += 1
    const timer = setInterval(() => response.write('x'), 500)
    response.once('close', () => {
      clearInterval(timer)
      open -= 1
    })
  })
  const url = `${host}/a.mp4`
  return { id: await beginImport(reelgate.owner, url), url, isOpen: () => open > 0 }
}

/** @returns the statuses of both interfaces */
async function statusesFor(url: string): Promise<number[]> {
  const { owner } = reelgate
  const current = await owner.call('PUT', '/api/videos/importUrl', { body: { url } })
  const earlier = await fetch(`${owner.url}/v2/importUrl?url=${encodeURIComponent(url)}`, {
    method: 'POST',
    body: new URLSearchParams({ clientSecretKey: owner.apiKey }),
  })
  return [current.status, earlier.status]
}

test('S27: behind a proxy of the environment the server still dials the hosts itself, after its own check', async () => {
  const host = await newHost((request, response) => sendFile(request, response, video))
  await reelgate.owner.until(await beginImport(reelgate.owner, `${host}/a.mp4`), 'ready')
  expect(canaries.received()).toEqual([])
})

test('S01–S06: an address that shows its private place is refused with 400 on both interfaces, however it is written', async () => {
  const literals = [...PRIVATE, ...NOT_THERE].map((address) => (address.includes(':') ? `[${address}]` : address))
  const written = [
    ...['2130706433', '0177.0.0.1', '0x7f.1', '127.1', '0', '127.0.0.1.', '１２７.０.０.１', '①②⑦.⓪.⓪.①', '127.0.0\u00ad.1'],
    ...['localhost', 'LOCALHOST.', 'foo.localhost', 'foo.localhost.'],
  ]
  for (const host of [...literals, ...written])
    expect([host, ...(await statusesFor(`http://${host}/x.mp4`))]).toEqual([host, 400, 400])
  expect(canaries.received()).toEqual([])
})

test('S05, S06: a name that resolves to a private address fails the import, and nothing is sent there', async () => {
  const leading = [...PRIVATE, ...NOT_THERE.filter((address) => !address.includes('.') || !address.includes(':'))]
  for (const [i, address] of leading.entries()) world.names.set(`private-${i}.example`, [address])
  world.names.set('metadata.google.internal', ['169.254.169.254'])
  const names = [...[...leading.keys()].map((i) => `private-${i}.example`), 'metadata.google.internal']
  const urls = names.flatMap((name) => [`http://${name}/x.mp4`, `https://${name}/x.mp4`])
  const reasons = await failuresOf(reelgate.owner, urls)
  expect(reasons.filter((reason) => !/^Encoding error: .* its host is not on the public internet/.test(reason))).toEqual([])
  expect(canaries.received()).toEqual([])
})

test('S07: of a name with public and private addresses only the public one is dialled', async () => {
  await world.site('8.8.3.7', (request, response) => sendFile(request, response, LETTER))
  world.names.set('mixed.example', ['127.0.0.1', '8.8.3.7', '10.0.0.1', '::1', 'fd00::1'])
  expect(await outcomeOf(reelgate.owner, 'http://mixed.example/a.mp4')).toMatchObject(LETTER_RECEIVED)
  expect(canaries.received()).toEqual([])
})

test('S08: a name that resolves to a public address first and to a private one later reaches no private address', async () => {
  let asked = 0
  await world.site('8.8.3.8', (request, response) => {
    asked += 1
    if (asked === 1)
      request.socket.destroy() // so that it is tried, and the name asked for, again
    else response.end(LETTER)
  })
  world.names.set('rebound.example', ({ type, turn }) => (type === 'AAAA' ? [] : turn === 0 ? ['8.8.3.8'] : ['127.0.0.1']))
  expect(await failureOf(reelgate.owner, 'http://rebound.example/a.mp4')).toMatch(/its host is not on the public internet/)
  expect(asked).toBe(1)
  expect(world.asked().filter(({ name, type }) => name === 'rebound.example' && type === 'A').length).toBeGreaterThan(1)
  expect(canaries.received()).toEqual([])
})

test('S09: a host that redirects to a private address, or to no web address, receives nothing from it', async () => {
  world.names.set('inside.example', ['10.0.0.1'])
  const locations = [
    ...[
      'http://127.0.0.1/',
      'https://127.0.0.1/',
      '//127.0.0.1/',
      'http://169.254.169.254/latest/',
      'http://[::1]/',
      'http://[fd00::1]/',
    ],
    ...[
      'http://127.0.0.1:6379/',
      'http://2130706433/',
      'http://inside.example/',
      'http://localhost/',
      `${reelgate.url}/api/videos`,
    ],
    ...['file:///etc/passwd', 'gopher://127.0.0.1/', 'ftp://127.0.0.1/', 'data:video/mp4;base64,AAAA', 'http://['],
  ]
  const host = await newHost((request, response) => {
    const location = locations[Number(request.url?.slice(1))] ?? ''
    response.writeHead(302, { Location: location }).end()
  })
  const reasons = await failuresOf(
    reelgate.owner,
    locations.map((_, i) => `${host}/${i}`),
  )
  expect(
    reasons.filter(
      (reason) => !/^Encoding error: .*(is not allowed|whole address|not an address|not on the public)/.test(reason),
    ),
  ).toEqual([])
  expect(canaries.received()).toEqual([])
})

test('S10: an endless chain of redirects, or an endless address, ends as one clear failure; five redirects are followed', async () => {
  const host = await newHost((request, response) => {
    const hop = Number(/\d+/.exec(request.url ?? ''))
    const location = request.url?.startsWith('/endless') ? `/${'a'.repeat(1e6)}` : `/hop/${hop + 1}`
    if (request.url?.startsWith('/five') && hop === 5) sendFile(request, response, LETTER)
    else response.writeHead(302, { Location: request.url?.startsWith('/five') ? `/five/${hop + 1}` : location }).end()
  })
  expect(await failureOf(reelgate.owner, `${host}/hop/0`)).toMatch(/redirects more than 5 times/)
  expect(await failureOf(reelgate.owner, `${host}/endless`)).toMatch(/its headers are too long/)
  expect(await outcomeOf(reelgate.owner, `${host}/five/0`)).toMatchObject(LETTER_RECEIVED)
})

test('S12, S13, S25: an address with credentials, of another scheme, too long or malformed is refused with 400', async () => {
  const urls = [
    ...['http://a@127.0.0.1#@good.example/', 'http://good.example%2f@127.0.0.1', 'https://user:secret@good.example/'],
    ...['file:///etc/passwd', 'ftp://good.example/', 'data:video/mp4;base64,AAAA', 'concat:a|b', 'rtmp://good.example/'],
    ...['rtp://good.example/', 's3://bucket/a', 'jar:http://good.example/', 'ssh://good.example', 'gopher://good.example/'],
    ...['good.example/a', '//good.example/a', '', 'http://', 'http://[::1', `http://${'a.'.repeat(150)}org/`],
    ...[`http://${'a'.repeat(64)}.org/`, 'http://xn--a.example/', `http://good.example/${'a'.repeat(9_000)}`],
  ]
  for (const url of urls) expect([url, ...(await statusesFor(url))]).toEqual([url, 400, 400])
  const endless = { url: `http://good.example/${'a'.repeat(100_000)}` }
  expect((await reelgate.owner.call('PUT', '/api/videos/importUrl', { body: endless })).status).toBe(400)
  expect(canaries.received()).toEqual([])
})

test('S12: the host that is judged is the host that is asked', async () => {
  const host = await newHost((_request, response) => response.writeHead(404).end())
  const reason = await failureOf(reelgate.owner, `${host}\\@127.0.0.1/a.mp4`)
  expect(reason).toBe(`Encoding error: ${host}/@127.0.0.1/a.mp4 returned status 404 instead of a video.`)
  expect(canaries.received()).toEqual([])
})

test('S14: ports of other services, and the server’s own, are refused', async () => {
  const own = new URL(reelgate.url).port
  for (const port of ['22', '25', '6379', '11211', '5432', '8080', own])
    expect([port, ...(await statusesFor(`http://good.example:${port}/`))]).toEqual([port, 400, 400])
})

test('S15: line breaks in an address make no second header', async () => {
  const requests: string[] = []
  world.names.set('raw.example', ['8.8.3.15'])
  const site = createSocketServer((socket) => {
    socket
      .on('error', () => {})
      .on('data', (bytes) => {
        requests.push(bytes.toString())
        socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n')
      })
  })
  await world.serve(site, '8.8.3.15', 80)
  for (const path of ['/a%0d%0aHost:%20evil.example?b=%0d%0aX-Evil:%201', '/a\r\nX-Evil: 1\r\n\r\nGET /b'])
    await failureOf(reelgate.owner, `http://raw.example${path}`)
  expect(requests).toHaveLength(2)
  for (const request of requests) {
    expect(request.match(/^(host|x-evil|get) ?/gim)).toHaveLength(2)
    expect(request).toMatch(/^host: raw\.example\r$/im)
  }
})

test('S16: a playlist with segments at private addresses is a file like any other, and nothing opens what it names', async () => {
  const playlists: Record<string, string> = {
    '/a.m3u8':
      '#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\nhttp://127.0.0.1/a.ts\n#EXTINF:4,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n',
    '/a.mpd': '<?xml version="1.0"?><MPD><Period><BaseURL>http://127.0.0.1/</BaseURL></Period></MPD>',
    '/a.txt': "ffconcat version 1.0\nfile 'http://127.0.0.1/a.mp4'\n",
  }
  const host = await newHost((request, response) => response.end(playlists[request.url ?? '']))
  for (const path of Object.keys(playlists))
    expect(await failureOf(reelgate.owner, `${host}${path}`)).toMatch(/^Not a media file: /)
  expect(canaries.received()).toEqual([])
})

test('S18: an announced or actual length beyond the limit ends the import; when the announced length is too small, only that much is read', async () => {
  const host = await newHost((request, response) => {
    if (request.url === '/announced') response.writeHead(200, { 'Content-Length': String(10 * 2 ** 40) }).write('x')
    if (request.url === '/more') response.end(Buffer.alloc(MAX_BYTES + 1, 7))
    if (request.url === '/chunked') {
      response.write(Buffer.alloc(MAX_BYTES, 7))
      setImmediate(() => response.end('7'))
    }
  })
  const tooLong = new RegExp(`^Encoding error: .* longer than ${MAX_BYTES} bytes`)
  for (const path of ['/announced', '/more', '/chunked'])
    expect(await failureOf(reelgate.owner, `${host}${path}`)).toMatch(tooLong)
  world.names.set('lying.example', ['8.8.3.18'])
  const lying = createSocketServer((socket) => {
    socket
      .on('error', () => {})
      .once('data', () => socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n${'a text. '.repeat(1e4)}`))
  })
  await world.serve(lying, '8.8.3.18', 80)
  expect(await failureOf(reelgate.owner, 'http://lying.example/a.mp4')).toMatch(/^Not a media file: /)
})

test('S21, S11: over TLS a valid certificate is needed, and a response must not redirect to an open connection', async () => {
  world.names.set('tls.example', ['8.8.3.21'])
  world.names.set('other.example', ['8.8.3.22'])
  let asked = 0
  const answering: RequestListener = (request, response) => {
    asked += 1
    if (request.url === '/open') response.writeHead(302, { Location: 'http://tls.example/a.mp4' }).end()
    else sendFile(request, response, LETTER)
  }
  const certificates: [string, string, string][] = [
    ['8.8.3.23', 'self-signed.example', SELF_SIGNED],
    ['8.8.3.24', 'expired.example', EXPIRED],
    ['8.8.3.25', 'another.example', OF_ANOTHER_HOST],
  ]
  for (const [address, name, cert] of certificates) {
    world.names.set(name, [address])
    await world.serve(createTlsServer({ key: KEY, cert }, answering), address, 443)
    expect(await failureOf(reelgate.owner, `https://${name}/a.mp4`)).toMatch(/its certificate is not valid/)
  }
  expect(asked).toBe(0)
  await world.serve(createTlsServer({ key: KEY, cert: VALID }, answering), '8.8.3.21', 443)
  expect(await failureOf(reelgate.owner, 'https://tls.example/open')).toMatch(/redirects from https to http/)
  expect(asked).toBe(1)
  expect(await outcomeOf(reelgate.owner, 'https://tls.example/a.mp4')).toMatchObject(LETTER_RECEIVED)
})

test('S11: no credential and no cookie is carried from one host to another', async () => {
  const received: string[] = []
  const second = await newHost((request, response) => {
    received.push(JSON.stringify(request.headers))
    sendFile(request, response, LETTER)
  })
  const first = await newHost((_request, response) =>
    response.writeHead(302, { Location: `${second}/a.mp4`, 'Set-Cookie': 'session=5ecret', 'WWW-Authenticate': 'Basic' }).end(),
  )
  expect(await outcomeOf(reelgate.owner, `${first}/a.mp4?5ecret`)).toMatchObject(LETTER_RECEIVED)
  expect(received).toHaveLength(1)
  expect(received[0]).not.toMatch(/5ecret|cookie|authorization|referer/i)
})

test('I8: every file in the folder is the source of a video', async () => {
  const unnamed = async () => {
    const files = (await listFiles(reelgate, 'sources')).filter((name) => name.endsWith('.sealed'))
    const named = readRows<{ file: string }>(
      reelgate,
      'select file from source union select file from import where file is not null',
    ).map(({ file }) => file)
    return [...new Set(files).symmetricDifference(new Set(named))]
  }
  await expect.poll(unnamed).toEqual([]) // a file is there before its row
  expect(canaries.received()).toEqual([])
})

test('S17: answers that drip, hang or never end are left when the import has had its time, and leave nothing', async () => {
  const patience = await startSharedReelgate(await world.around({ REELGATE_IMPORT_MAX_S: '3' }))
  try {
    const open = new Set<Socket>()
    /** Begins to answer like this, and continues like that for ever. */
    const drip = (beginning: string, then: string) => (socket: Socket) => {
      open.add(socket.resume())
      socket.write(beginning)
      const timer = setInterval(() => socket.write(then), 50)
      socket
        .on('error', () => {})
        .once('close', () => {
          clearInterval(timer)
          open.delete(socket)
        })
    }
    const bodies: Record<string, (socket: Socket) => void> = {
      '8.8.3.31': drip('HTTP/1.1 200 OK\r\nX-Long: ', 'x'),
      '8.8.3.32': drip('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', '1\r\nx\r\n'),
      '8.8.3.33': drip('', ''),
    }
    for (const [address, listener] of Object.entries(bodies)) {
      world.names.set(`slow-${address}.example`, [address])
      await world.serve(createSocketServer(listener), address, 80)
    }
    const reasons = await failuresOf(
      patience.owner,
      Object.keys(bodies).map((address) => `http://slow-${address}.example/a.mp4`),
    )
    for (const reason of reasons) expect(reason).toMatch(/^Encoding error: .*(it took too long|within 3 seconds)/)
    await expect.poll(() => open.size).toBe(0)
    await expect.poll(() => listFiles(patience, 'sources')).toEqual([])
  } finally {
    await patience.remove()
  }
})

test('S17: an answer that brings less than 64 KiB in a minute gives its place back', async () => {
  const { id, url, isOpen } = slow
  await expect.poll(() => reelgate.output(), { interval: 500 }).toContain(`${url} was not fetched: the transfer was too slow`)
  expect(await reelgate.owner.video(id)).toMatchObject({ status: 'Queued' })
  await reelgate.owner.delete([id])
  await expect.poll(isOpen).toBe(false)
})
