import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { makeCertificate } from '../certificate.ts'
import { shiftedClock } from '../faults/faked-clock.ts'
import { startReelgate } from '../in-process.ts'
import { makeLocation } from '../installation-folder.ts'
import { startNginx } from '../nginx.ts'
import { runCli } from '../reelgate.ts'
import { changeRows } from '../rows.ts'

type Check = { check: string; state: string; says: string }

async function doctor(env: Record<string, string>) {
  const { stdout } = await runCli(['doctor', '--json'], env)
  const checks: Check[] = JSON.parse(stdout)
  const byName = new Map(checks.map((check) => [check.check, check]))
  return (name: string) => ({ state: byName.get(name)?.state, says: byName.get(name)?.says ?? '' })
}

async function makeOwnPlace() {
  const location = await makeLocation()
  onTestFinished(() => location.remove())
  return location
}

/** What a proxy in front of Reelgate would serve. */
async function startTlsSite() {
  const { key, cert, file } = makeCertificate('IP:127.0.0.1', 10)
  const server = createServer({ key, cert }, (_request, response) => response.end('{"status":"ok"}'))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, certificateFile: file }
}

test('the doctor says how long the certificate of the public address is valid, and whether browsers accept it', async () => {
  const { env } = await makeOwnPlace()
  const { url, certificateFile } = await startTlsSite()
  const unknown = await doctor({ ...env, REELGATE_PUBLIC_URL: url })
  expect(unknown('public address').state).toBe('ok')
  expect(unknown('certificate')).toMatchObject({ state: 'trouble', says: expect.stringContaining('Browsers reject') })
  expect(unknown('clock').state).toBe('ok')
  expect(unknown('proxy')).toMatchObject({ state: 'warning', says: expect.stringContaining('REELGATE_TRUSTED_PROXIES is empty') })

  const known = { ...env, REELGATE_PUBLIC_URL: url, NODE_EXTRA_CA_CERTS: certificateFile, REELGATE_TRUSTED_PROXIES: '127.0.0.1' }
  const soon = await doctor(known)
  expect(soon('certificate')).toEqual({
    state: 'warning',
    says: 'The certificate ends in 9 days. Check that its renewal works.',
  })
  expect(soon('proxy').state).toBe('ok')
  const later = await doctor({ ...known, ...shiftedClock('+30d') })
  expect(later('certificate')).toMatchObject({ state: 'trouble', says: expect.stringContaining('ended on') })
  expect(later('clock')).toMatchObject({ state: 'warning', says: expect.stringContaining('Set both by NTP') })
})

test('the doctor waits for a server that has just been restarted behind its proxy', async () => {
  const { env } = await makeOwnPlace()
  let asked = 0
  const proxy = createHttpServer(({ url }, response) => {
    if (url === '/healthz') asked += 1
    response.writeHead(asked > 2 ? 200 : 502).end('{"status":"ok"}')
  })
  await once(proxy.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void proxy.close())
  const { port } = proxy.address() as AddressInfo
  const found = await doctor({ ...env, REELGATE_PUBLIC_URL: `http://127.0.0.1:${port}` })
  expect(found('public address').state).toBe('ok')
  expect(asked).toBe(3)
})

test('a public address that leads nowhere or elsewhere is trouble; trusting every proxy and wide outbound ranges are warnings', async () => {
  const { env } = await makeOwnPlace()
  const nowhere = await doctor({ ...env, REELGATE_PUBLIC_URL: 'http://127.0.0.1:1', REELGATE_TRUSTED_PROXIES: '0.0.0.0/0' })
  expect(nowhere('public address')).toMatchObject({ state: 'trouble', says: expect.stringContaining('cannot be reached') })
  expect(nowhere('proxy')).toMatchObject({ state: 'warning', says: expect.stringContaining('trusts every address') })
  expect(nowhere('outbound requests').state).toBe('ok')

  const other = createHttpServer((_request, response) => response.writeHead(404).end())
  await once(other.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void other.close())
  const REELGATE_PUBLIC_URL = `http://127.0.0.1:${(other.address() as AddressInfo).port}`
  const narrow = 'store.internal:9000,10.1.2.0/24'
  const wide = '10.0.0.0/8,127.0.0.0/24,169.254.169.0/24,fd00::/8'
  const elsewhere = await doctor({ ...env, REELGATE_PUBLIC_URL, REELGATE_OUTBOUND_ALLOW: `${narrow},${wide}` })
  expect(elsewhere('public address')).toMatchObject({ state: 'trouble', says: expect.stringContaining('status 404') })
  expect(elsewhere('outbound requests')).toMatchObject({
    state: 'warning',
    says: expect.stringContaining(`too wide: ${wide.replaceAll(',', ', ')}.`),
  })
  expect((await doctor({ ...env, REELGATE_OUTBOUND_ALLOW: narrow }))('outbound requests').state).toBe('ok')
})

test('the doctor names webhooks that fail and API keys that end in the next 14 days', async () => {
  const location = await makeOwnPlace()
  const none = await doctor(location.env)
  expect([none('webhook deliveries').state, none('API keys').state]).toEqual(['ok', 'ok'])
  await runCli(['account', 'create', 'school'], location.env)
  const endsIn = (days: number) =>
    changeRows(location, 'update api_key set expires_at_s = ?', Math.floor(Date.now() / 1000) + days * 86_400)
  endsIn(15)
  expect((await doctor(location.env))('API keys').state).toBe('ok')
  endsIn(13)
  const [account] = JSON.parse((await runCli(['account', 'list', '--json'], location.env)).stdout)
  const webhookId = 'ab'.repeat(16)
  changeRows(
    location,
    'insert into webhook (id, account_id, url, wrapped_secret, created_at_s, failing_since_s) values (?, ?, ?, ?, ?, ?)',
    ...[webhookId, account.id, 'https://example.com/secret-path', Buffer.alloc(1), 1, 2],
  )
  const found = await doctor(location.env)
  expect(found('API keys').state).toBe('warning')
  expect(found('webhook deliveries')).toMatchObject({ state: 'warning', says: expect.stringContaining(webhookId) })
  expect(found('webhook deliveries').says).not.toContain('secret-path')
})

test('U30: the doctor says what nginx in front refuses of an upload, with the number and the setting, and sends no file for it', async () => {
  const { env } = await makeOwnPlace()
  const { url } = await startReelgate()
  async function behind(lines: string) {
    const nginx = await startNginx(() => ({ location: `proxy_pass ${url}; ${lines}` }))
    onTestFinished(() => nginx.remove())
    return (await doctor({ ...env, REELGATE_PUBLIC_URL: nginx.url }))('upload size')
  }
  const cure = 'Set client_max_body_size 0; in its server block and reload it.'
  expect(await behind('')).toEqual({
    state: 'warning',
    says: `nginx in front refuses files over about 1 MB (status 413). ${cure}`,
  })
  expect(await behind('client_max_body_size 700m;')).toEqual({
    state: 'warning',
    says: `nginx in front refuses files over about 730 MB (status 413). ${cure}`,
  })
  const open = { state: 'ok', says: 'Files of up to 32 GB are not refused on their way.' }
  expect(await behind('client_max_body_size 0;')).toEqual(open)
  expect(await behind('client_max_body_size 0; proxy_request_buffering off;')).toEqual(open)
})

test('U30: the doctor names Cloudflare’s limits where it is in front, whether or not it refuses before a file is sent', async () => {
  const { env } = await makeOwnPlace()
  async function behind(refusesOver: number) {
    const edge = createHttpServer((_request, response) => response.setHeader('CF-Ray', '8f00-FRA').end('{"status":"ok"}'))
    edge.on('checkContinue', (request, response) => {
      const isRefused = Number(request.headers['content-length']) > refusesOver
      response.writeHead(isRefused ? 413 : 400, { 'CF-Ray': '8f00-FRA', Server: 'cloudflare' }).end()
    })
    await once(edge.listen(0, '127.0.0.1'), 'listening')
    onTestFinished(() => void edge.close())
    const { port } = edge.address() as AddressInfo
    return (await doctor({ ...env, REELGATE_PUBLIC_URL: `http://127.0.0.1:${port}` }))('upload size')
  }
  expect(await behind(100_000_000)).toEqual({
    state: 'warning',
    says: expect.stringMatching(/^Cloudflare in front refuses files over about (99|100) MB .* "DNS only"/),
  })
  expect(await behind(1e15)).toEqual({ state: 'warning', says: expect.stringMatching(/^Cloudflare is in front: .*over 100 MB/) })
})

test('U41: the doctor names the account and the video whose saved defaults refuse every OTP, and what to do', async () => {
  const { owner, ...reelgate } = await startReelgate()
  const { videoId } = await owner.credentials('A video')
  const { videoId: deletedId } = await owner.credentials('Another')
  const tooLong = JSON.stringify({ annotate: [{ type: 'rtext', text: 'x'.repeat(501) }] })
  const sayings: string[] = []
  const look = async () => {
    const { state, says } = (await doctor(reelgate.env))('OTP defaults')
    sayings.push(says)
    return state
  }
  await owner.call('PUT', '/api/otp-defaults', { body: { annotate: [{ type: 'rtext', text: '{email}' }] } })
  expect(await look()).toBe('ok')
  changeRows(reelgate, 'update video set otp_defaults = ?', tooLong)
  await owner.call('DELETE', `/api/videos?videos=${deletedId}`)
  expect(await look()).toBe('trouble')
  expect(sayings[1]).toMatch(
    new RegExp(`^The OTP defaults of video ${videoId} of account "\\S+" refuse every OTP: annotate has a text`),
  )
  changeRows(reelgate, 'update account set otp_defaults = ?', tooLong)
  expect(await look()).toBe('trouble')
  expect(sayings[2]).toMatch(
    /^The OTP defaults of account "\S+", video \w+ of account .*Shorten it\. Save others in the console, under Develop/,
  )
})

test('the doctor says whether the origin of segments refuses a wrong address, that limits by bytes are its own, and what to do while it is away', async () => {
  const { env } = await makeOwnPlace()
  const { url } = await startReelgate()
  const segmentsAt = async (origin: string) => (await doctor({ ...env, REELGATE_MEDIA_URL: origin }))('segments')
  expect(await segmentsAt(url)).toMatchObject({ state: 'ok', says: expect.stringContaining('limits by bytes are its own') })
  const open = createHttpServer((_request, response) => response.end('anything'))
  await once(open.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void open.close())
  const { port } = open.address() as AddressInfo
  expect(await segmentsAt(`http://127.0.0.1:${port}`)).toMatchObject({
    state: 'trouble',
    says: expect.stringContaining('status 200'),
  })
  const away = await segmentsAt('http://127.0.0.1:1')
  expect(away).toMatchObject({ state: 'trouble', says: expect.stringContaining('REELGATE_MEDIA_DELIVERY=server') })
})
