import { execFile } from 'node:child_process'
import type { LookupAddress, lookup } from 'node:dns'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer as createSocketServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { describe, expect, onTestFinished, test } from 'vitest'
import { guardedFetch, type OutboundRequest } from '../../src/outbound/fetch.ts'
import { createOutboundPolicy, parseOutboundUrl } from '../../src/outbound/policy.ts'

// Real sockets on this machine. A canary is a listener that must not be reached: its requests are counted.

// Without an authority, for 127.0.0.1, for a hundred years.
const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgyPsbD0+Rq7xA2+c3
5rS1n5xrJX47kQQGl9U0p5wuogihRANCAARXrI0eFJUDtrfD7ggSHHnrcg2BXa9Q
qIfaooUaHTDxKdk9s/YGcslcx0zGw0thlcpY2pf51X/aSS3js3NTjzFs
-----END PRIVATE KEY-----`
const CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBmTCCAT6gAwIBAgIUZe4y2IhjW2PQABd5iaKgv5R3LKUwCgYIKoZIzj0EAwIw
GDEWMBQGA1UEAwwNcmVlbGdhdGUtdGVzdDAgFw0yNjExMjEwODI3MDZaGA8yMTI2
MTAyODA4MjcwNlowGDEWMBQGA1UEAwwNcmVlbGdhdGUtdGVzdDBZMBMGByqGSM49
AgEGCCqGSM49AwEHA0IABFesjR4UlQO2t8PuCBIceetyDYFdr1Coh9qihRodMPEp
2T2z9gZyyVzHTMbDS2GVyljal/nVf9pJLeOzc1OPMWyjZDBiMB0GA1UdDgQWBBQh
PQujf1FHscb6v945ArFFsch3TDAfBgNVHSMEGDAWgBQhPQujf1FHscb6v945ArFF
sch3TDAPBgNVHRMBAf8EBTADAQH/MA8GA1UdEQQIMAaHBH8AAAEwCgYIKoZIzj0E
AwIDSQAwRgIhALpvKdfDtvJxef9zYs+QZsaTdOAyjrJcc8rCNrG0DbijAiEA/iiH
qL9qA1jtx/C6dhUopQT5um3ewTLPH6yj+Izrres=
-----END CERTIFICATE-----`

const LIMITS = { accountId: 'ann', maxBytes: 1000, idleMs: 5_000, totalMs: 10_000 }

describe('what an address itself shows', () => {
  const strict = createOutboundPolicy([])
  const why = (url: string) => {
    try {
      parseOutboundUrl(strict, url)
    } catch (error) {
      return error instanceof Error ? error.message : 'not an error'
    }
    return 'asked'
  }

  test.each([
    ...[
      'http://127.0.0.1/x.png',
      'http://127.0.0.1./',
      'http://2130706433/',
      'http://0177.0.0.1/',
      'http://0x7f.1/',
      'http://127.1/',
    ],
    ...['http://0/', 'http://[::1]/', 'http://[::]/', 'http://[::ffff:127.0.0.1]/', 'http://[::ffff:7f00:1]/'],
    ...[
      'http://[64:ff9b::7f00:1]/',
      'http://[2002:7f00:1::]/',
      'http://[fe80::1]/',
      'http://[fd00::1]/',
      'http://[fd00:ec2::254]/',
    ],
    ...[
      'http://１２７.０.０.１/',
      'http://①②⑦.⓪.⓪.①/',
      'http://127.0.0\u00ad.1/',
      'http://localhost/',
      'http://LOCALHOST./',
      'http://foo.localhost/',
    ],
    ...['http://169.254.169.254/latest/meta-data/', 'http://100.100.100.200/', 'http://10.0.0.1/', 'http://192.168.1.1/'],
    ...['http://255.255.255.255/', 'http://224.0.0.1/', 'http://198.18.0.1/'],
  ])('S01–S06: %s is not on the public internet', (url) => {
    expect(why(url)).toMatch(/ is not allowed: it is not on the public internet/)
  })

  test.each([
    ...[
      'file:///etc/passwd',
      'ftp://example.org/x',
      'data:image/png;base64,AAAA',
      'concat:a|b',
      'rtmp://example.org/',
      'gopher://x/',
    ],
    ...[
      'jar:http://example.org/',
      'ssh://example.org',
      '//example.org/x',
      'example.org/x',
      '',
      'http://',
      'http://[::1',
      'http://exa mple.org/',
    ],
    ...['javascript:alert(1)', 'blob:https://example.org/1', 'http://good.com%2f@127.0.0.1', 'http://a\r\nHost: x/'],
  ])('S13, S25: %j is not a whole web address', (url) => {
    expect(why(url)).toMatch(/^Write a whole address|user name/)
  })

  test.each([22, 25, 6379, 11211, 5432, 8080])('S14: port %i is refused', (port) => {
    expect(why(`http://example.org:${port}/`)).toMatch(/only ports 80 and 443/)
  })

  test.each(['http://a@127.0.0.1#@good.com/', 'http://good.com@127.0.0.1/', 'https://user:secret@example.org/'])(
    'S12: %s is refused for its credentials, which are not repeated',
    (url) => {
      expect(why(url)).toMatch(/user name and password/)
      expect(why(url)).not.toMatch(/secret|good/)
    },
  )

  test('S25: an address, a host or a label too long for any is refused', () => {
    const tooLong = [
      `http://example.org/${'a'.repeat(100_000)}`,
      `http://${'a.'.repeat(150)}org/`,
      `http://${'a'.repeat(64)}.org/`,
    ]
    expect(tooLong.filter((url) => why(url) === 'asked')).toEqual([])
    expect(why(`http://${'a'.repeat(63)}.org/`)).toBe('asked')
  })

  test('S22: a sentence about an address never holds its query', () => {
    expect(why('http://127.0.0.1/x?X-Amz-Signature=5ecret#5ecret')).not.toMatch(/5ecret/)
  })

  test('an entry of REELGATE_OUTBOUND_ALLOW is HOST:PORT or ADDRESS/BITS, anything else is refused by name', () => {
    const allowing = createOutboundPolicy(['Images.lan:8080', '10.1.0.0/16', '[fd00::5]:9000', 'fd01::/64'])
    const asked = ['http://images.lan:8080/a', 'http://10.1.2.3/', 'https://[fd00::5]:9000/', 'http://[fd01::7]/']
    for (const url of asked) expect(parseOutboundUrl(allowing, url).href).toBe(url)
    for (const url of ['http://images.lan:8081/', 'http://10.2.0.1/', 'http://10.1.2.3:8080/', 'http://[fd01:0:0:1::7]/'])
      expect(() => parseOutboundUrl(allowing, url)).toThrow(/is not allowed/)
    for (const entry of [
      'images.lan',
      '10.0.0.0/33',
      'fd00::/129',
      'a:0',
      'a:b',
      '10.0.0.0/8:80',
      'http://a:80',
      'a:80/x',
      'a@b:80',
    ])
      expect(() => createOutboundPolicy([entry]), entry).toThrow(`REELGATE_OUTBOUND_ALLOW has "${entry}"`)
  })
})

const firstFreePort = Number(readFileSync('/proc/sys/net/ipv4/ip_unprivileged_port_start', 'utf8'))
const mayListenOn80 = process.getuid?.() === 0 || firstFreePort <= 80

describe('what is dialled', () => {
  test('S07, S08: a name that leads to this machine is not dialled, also when it led elsewhere a moment before', async ({
    skip,
  }) => {
    skip(!mayListenOn80, 'only root may listen on port 80 here')
    const canary = await startCanary(80, '127.77.0.1')
    // The allowed address represents the public internet: it is dialled, and without a listener.
    const rebinding = createOutboundPolicy(
      ['127.77.0.9/32'],
      names(['127.77.0.9'], ['127.77.0.1'], ['::ffff:127.77.0.1', '::1', '10.0.0.1']),
    )
    await expect(get(rebinding, 'http://rebound.example/')).rejects.toThrow(/nothing answers there/)
    for (const _ of [2, 3])
      await expect(get(rebinding, 'http://rebound.example/')).rejects.toThrow(/its host is not on the public internet/)
    expect(canary.connections()).toBe(0)
    await expect(get(createOutboundPolicy(['127.77.0.1/32'], names(['127.77.0.1'])), 'http://a.example/')).rejects.toThrow()
    expect(canary.connections(), 'a canary that hears').toBe(1)
  })

  test('S07: of a name with a public and a local address only the public one is ever dialled', async ({ skip }) => {
    skip(!mayListenOn80, 'only root may listen on port 80 here')
    const canary = await startCanary(80, '127.77.0.2')
    const outbound = createOutboundPolicy(['127.77.0.9/32'], names(['127.77.0.2', '127.77.0.9', '127.77.0.2']))
    await expect(get(outbound, 'http://mixed.example/')).rejects.toThrow(/nothing answers there/)
    expect(canary.connections()).toBe(0)
  })

  test('F-34: silent name servers delay one look-up of an account, and no other account’s', async () => {
    const asked: string[] = []
    const silent: (() => void)[] = []
    const resolve = (name: string, _options: unknown, done: (error: Error | null, found?: LookupAddress[]) => void) => {
      asked.push(name)
      if (name.startsWith('silent')) silent.push(() => done(Object.assign(new Error('silence'), { code: 'EAI_AGAIN' })))
      else done(null, [{ address: '127.77.0.9', family: 4 }])
    }
    const outbound = createOutboundPolicy(['127.77.0.9/32'], resolve as unknown as typeof lookup)
    const ofAnn = ['silent1', 'silent2', 'silent3', 'good'].map((name) =>
      get(outbound, `http://${name}.example/`).catch((error: Error) => error.message),
    )
    await expect.poll(() => asked).toEqual(['silent1.example'])
    await expect(get(outbound, 'http://ben.example/', { accountId: 'ben' })).rejects.toThrow(/nothing answers there/)
    expect(asked).toEqual(['silent1.example', 'ben.example'])
    for (let i = 0; i < 3; i++) {
      await expect.poll(() => silent).toHaveLength(1)
      silent.pop()?.()
    }
    expect(await Promise.all(ofAnn)).toEqual([
      ...[1, 2, 3].map((i) => `http://silent${i}.example/ was not fetched: its host name cannot be looked up now.`),
      'http://good.example/ was not fetched: nothing answers there.',
    ])
  })

  test('S09: a redirect is checked like an address of its own', async () => {
    const canary = await startCanary()
    for (const location of [
      ...[`http://127.0.0.1:${canary.port}/`, `//127.0.0.1:${canary.port}/`, `http://[::ffff:127.0.0.1]:${canary.port}/`],
      ...['http://127.0.0.1/', 'http://169.254.169.254/', 'file:///etc/passwd', 'gopher://127.0.0.1/', 'http://[', 'data:,x'],
    ]) {
      const { outbound, url } = await startSite((_request, response) => response.writeHead(302, { Location: location }).end())
      await expect(get(outbound, url), location).rejects.toThrow(/is not allowed|whole address|not an address/)
    }
    expect(canary.connections()).toBe(0)
  })

  test('S21: a site with an untrusted certificate gets no request', async () => {
    let asked = 0
    const site = await startTlsSite((_request, response) => {
      asked++
      response.end()
    })
    await expect(get(site.outbound, site.url)).rejects.toThrow(/its certificate is not valid/)
    expect(asked).toBe(0)
  })

  test('S11: a redirect from https to http is refused', async () => {
    const open = await startCanary()
    const site = await startTlsSite((_request, response) =>
      response.writeHead(302, { Location: `http://127.0.0.1:${open.port}/` }).end(),
    )
    // Authorities are read at the start of a process.
    const folder = await mkdtemp(join(tmpdir(), 'reelgate-tls-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    await writeFile(join(folder, 'ca.pem'), CERTIFICATE)
    const source = join(import.meta.dirname, '../../src/outbound')
    const script = `
      const { createOutboundPolicy } = await import('${source}/policy.ts')
      const { guardedFetch } = await import('${source}/fetch.ts')
      const outbound = createOutboundPolicy(['${new URL(site.url).host}', '127.0.0.1:${open.port}'])
      await guardedFetch(outbound, { accountId: 'ann', url: '${site.url}', maxBytes: 9, idleMs: 5000, totalMs: 5000 }, async () => {}).catch((error) => console.log(error.message))`
    const env = { PATH: process.env.PATH, NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem') }
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], { env })
    expect(stdout).toMatch(/redirects from https to http/)
    expect(open.connections()).toBe(0)
  })
})

describe('what is read', () => {
  test('an answer comes with its status, headers and bytes, after a redirect too, and asks in one clean request', async () => {
    const received: string[] = []
    const { outbound, url } = await startSite((request, response) => {
      received.push(
        `${request.method} ${request.url} ${request.headers.host} ${request.headers.cookie} ${request.headers.referer}`,
      )
      if (request.url?.startsWith('/moved')) response.end('picture')
      else response.writeHead(301, { Location: '/moved?a=%0d%0aHost:%20x', 'Set-Cookie': 'a=1' }).end()
    })
    expect(await get(outbound, url)).toEqual({ status: 200, text: 'picture' })
    const { host } = new URL(url)
    expect(received).toEqual([`GET / ${host} undefined undefined`, `GET /moved?a=%0d%0aHost:%20x ${host} undefined undefined`])
  })

  test('W02: a redirect of a request that does not follow redirects is the response, and nothing is sent to its target', async () => {
    const canary = await startCanary()
    const received: string[] = []
    const { outbound, url } = await startSite(async (request, response) => {
      const text = Buffer.concat(await Array.fromAsync(request)).toString()
      received.push(`${request.method} ${request.headers['content-type']} ${request.headers['accept-encoding']} ${text}`)
      response.writeHead(307, { Location: `http://127.0.0.1:${canary.port}/` }).end('moved')
    })
    const sent = {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{"ü":1}',
      followRedirects: false,
    } as const
    expect(await get(outbound, url, sent)).toEqual({ status: 307, text: 'moved' })
    expect(received).toEqual(['POST application/json identity {"ü":1}'])
    expect(canary.connections()).toBe(0)
  })

  test('S10: an endless chain of redirects ends after five, one with an endless address immediately', async () => {
    let asked = 0
    const { outbound, url } = await startSite((_request, response) => {
      asked++
      response.writeHead(302, { Location: '/again' }).end()
    })
    await expect(get(outbound, url)).rejects.toThrow(/redirects more than 5 times/)
    expect(asked).toBe(6)
    const endless = await startSite((_request, response) =>
      response.writeHead(302, { Location: `/${'a'.repeat(1_000_000)}` }).end(),
    )
    await expect(get(endless.outbound, endless.url)).rejects.toThrow(/headers are too long/)
  })

  test('S18: no more is read than was asked for, whatever length was announced', async () => {
    const bodies: RequestListener[] = [
      (_request, response) => response.writeHead(200, { 'Content-Length': String(10 * 2 ** 40) }).write('x'),
      (_request, response) => response.end(Buffer.alloc(1001)),
      (_request, response) => {
        response.write(Buffer.alloc(600))
        setImmediate(() => response.write(Buffer.alloc(600)))
      },
    ]
    for (const body of bodies) {
      const { outbound, url } = await startSite(body)
      await expect(get(outbound, url)).rejects.toThrow(/longer than 1000 bytes/)
    }
    const { outbound, url } = await startSite((_request, response) => response.end(Buffer.alloc(1000)))
    expect(await get(outbound, url)).toMatchObject({ text: '\0'.repeat(1000) })
  })

  test('S19: a packed answer is not unpacked', async () => {
    const packed = gzipSync(Buffer.alloc(500_000))
    const { outbound, url } = await startSite((_request, response) =>
      response.writeHead(200, { 'Content-Encoding': 'gzip' }).end(packed),
    )
    expect(
      await guardedFetch(outbound, { url, ...LIMITS }, async ({ bytes }) => Buffer.concat(await Array.fromAsync(bytes))),
    ).toEqual(packed)
  })

  test('S17: an answer that drips or never ends is left', async () => {
    const slow: [RequestListener, RegExp][] = [
      [(_request, response) => void drip(response), /took too long/],
      [() => {}, /took too long|did not answer in time/],
    ]
    for (const [listener, why] of slow) {
      const { outbound, url, left } = await startSite(listener)
      await expect(get(outbound, url, { totalMs: 400 })).rejects.toThrow(why)
      await left
    }
    const headerDrip = await startSocketSite((socket) => drip(socket.write('HTTP/1.1 200 OK\r\n') ? socket : socket))
    await expect(get(headerDrip.outbound, headerDrip.url, { totalMs: 400 })).rejects.toThrow(/took too long/)
    await headerDrip.left
  })

  test('a caller that gives up gets its own reason, and the connection ends', async () => {
    const { outbound, url, left } = await startSite(() => {})
    const reason = new Error('the server stops')
    await expect(get(outbound, url, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    const giveUp = new AbortController()
    const asked = get(outbound, url, { signal: giveUp.signal })
    giveUp.abort(reason)
    await expect(asked).rejects.toBe(reason)
    void left
  })
})

async function get(outbound: ReturnType<typeof createOutboundPolicy>, url: string, more: Partial<OutboundRequest> = {}) {
  return guardedFetch(outbound, { url, ...LIMITS, ...more }, async ({ status, bytes }) => ({
    status,
    text: Buffer.concat(await Array.fromAsync(bytes)).toString(),
  }))
}

/** A resolver whose n-th answer is the n-th list. */
function names(...answers: string[][]): typeof lookup {
  let turn = 0
  const resolve = (
    _host: string,
    _options: unknown,
    done: (error: null, addresses: { address: string; family: number }[]) => void,
  ) => {
    const addresses = answers[Math.min(turn++, answers.length - 1)] ?? []
    done(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    )
  }
  return resolve as unknown as typeof lookup
}

async function startTlsSite(listener: RequestListener) {
  const port = await listen(createTlsServer({ key: KEY, cert: CERTIFICATE }, listener))
  return { outbound: createOutboundPolicy([`127.0.0.1:${port}`]), url: `https://127.0.0.1:${port}/` }
}

/** A site that may be asked. `left` resolves when a connection to it has ended. */
async function startSite(listener: RequestListener) {
  const server = createServer(listener)
  const left = new Promise<void>((resolve) => server.on('connection', (socket) => socket.once('close', () => resolve())))
  const port = await listen(server)
  return { outbound: createOutboundPolicy([`127.0.0.1:${port}`]), url: `http://127.0.0.1:${port}/`, left }
}

async function startSocketSite(listener: (socket: Socket) => void) {
  const server = createSocketServer((socket) => listener(socket.on('error', () => {})))
  const left = new Promise<void>((resolve) => server.on('connection', (socket) => socket.once('close', () => resolve())))
  const port = await listen(server)
  return { outbound: createOutboundPolicy([`127.0.0.1:${port}`]), url: `http://127.0.0.1:${port}/`, left }
}

async function startCanary(port = 0, host = '127.0.0.1') {
  let connections = 0
  const server = createSocketServer((socket) => {
    connections++
    socket.destroy()
  })
  return { port: await listen(server, port, host), connections: () => connections }
}

async function listen(server: Server, port = 0, host = '127.0.0.1'): Promise<number> {
  server.listen(port, host)
  await once(server, 'listening') // throws where it may not
  onTestFinished(() => {
    if ('closeAllConnections' in server && typeof server.closeAllConnections === 'function') server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

function drip(stream: { write(text: string): boolean; once(event: 'close', listener: () => void): unknown }): void {
  const timer = setInterval(() => stream.write('x'), 20)
  stream.once('close', () => clearInterval(timer))
}
