import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeLanguages, TONES } from '../browser/tones.ts'
import { createOwner } from '../client.ts'
import { type MovableClock, newMovableClock } from '../faults/faked-clock.ts'
import { type Reelgate, startSharedReelgate } from '../reelgate.ts'
import { newChance, rounds } from '../seeded-random.ts'
import { sendFrom, type Viewer } from '../viewer.ts'

// Everything that can be done over HTTP with the recorded requests of a viewer, later and over restarts of the server. The rules below
// the routes have a matrix of their own (races.test.ts).

let reelgate: Reelgate & { remove(): Promise<void> }
let clock: MovableClock
let aheadS = 0
beforeAll(async () => {
  clock = await newMovableClock('time')
  reelgate = await startSharedReelgate({ video: await makeLanguages(TONES, 15), env: clock.env })
})
afterAll(async () => {
  await reelgate?.remove()
  await clock?.remove()
})

/** Connections that are kept open end when time jumps, so each request has its own. */
const CLOSE = { Connection: 'close' }

async function passS(seconds: number): Promise<void> {
  aheadS += seconds
  await clock.set(aheadS)
}

/** A request of a viewer's browser, as its developer tools write it into a HAR file. */
type Recorded = {
  victim: Victim
  method: string
  path: string
  proof: string
  body?: string
  operation: string
  argument?: string
}
/** `kept`: what it signed and never sent, with the time at which it did. */
type Victim = { viewer: Viewer; otp: string; har: Recorded[]; kept: { request: Recorded; atS: number }[] }
type Sent = { status: number; code: string }

const chance = newChance('replay matrix')
function pick<T>(items: readonly T[]): T {
  const item = items[Math.floor(chance.between(0, items.length))]
  if (item === undefined) throw new Error('there is nothing to pick from')
  return item
}

async function send({ method, path, proof, body }: Pick<Recorded, 'method' | 'path' | 'proof' | 'body'>, address?: string) {
  const headers: Record<string, string> = {
    'Reelgate-Proof': proof,
    'User-Agent': 'Mozilla/5.0',
    'Sec-Fetch-Site': 'same-origin',
    ...CLOSE,
  }
  if (body !== undefined) headers['Content-Type'] = 'application/json'
  const { status, bytes } = await sendFrom(address ?? '127.0.0.1', `${reelgate.url}${path}`, headers, method, body)
  return { status: status ?? 0, code: /"code":"([^"]+)"/.exec(bytes.toString())?.[1] ?? '' }
}

/** What an honest browser asks for next; the request is written down before it is sent. */
function nextRequest(victim: Victim): Recorded {
  const { viewer } = victim
  const { session } = viewer.state
  const { operation, argument, body } = pick<{ operation: string; argument?: string; body?: string }>([
    { operation: 'key', argument: '0' },
    { operation: 'key', argument: '1' },
    { operation: 'playlist', argument: 'main' },
    { operation: 'playlist', argument: pick(['2', '3', '4']) }, // the languages
    { operation: 'page', body: '{}' },
    { operation: 'beat', body: JSON.stringify({ state: 'playing', positionS: 1, rate: 1, bufferS: 5 }) },
  ])
  const path = `/play/${session}/${operation}${argument === undefined ? '' : `/${argument}`}`
  const proof = viewer.proof({ operation, session, argument, body })
  return { victim, method: body === undefined ? 'GET' : 'POST', path, proof, body, operation, argument }
}

async function newVictim(): Promise<Victim> {
  const viewer = await newBrowser()
  const otp = await createOwner(reelgate.url, reelgate.owner.apiKey, CLOSE).issueOtp(reelgate.videoId)
  const body = JSON.stringify(viewer.redeemBody(otp))
  const victim: Victim = { viewer, otp, har: [], kept: [] }
  const proof = viewer.proof({ operation: 'redeem', body })
  victim.har.push({ victim, method: 'POST', path: '/play/redeem', proof, body, operation: 'redeem' })
  const response = await viewer.send('POST', '/play/redeem', proof, body)
  expect(response.status).toBe(200)
  viewer.state.session = String(((await response.json()) as { session: string }).session)
  return victim
}

/** The honest browser continues: what it sends is accepted, whatever others try with its requests. */
async function playOn(victim: Victim): Promise<void> {
  const { viewer } = victim
  const say = async () => {
    const request = nextRequest(victim)
    return { request, response: await viewer.send(request.method, request.path, request.proof, request.body) }
  }
  let said = await say()
  // Signed again where the nonce was too old, or the jump of time has ended the server's connections to PostgreSQL.
  while ([401, 503].includes(said.response.status)) said = await say()
  const { request, response } = said
  expect([request.operation, response.status, response.ok ? '' : await response.text()]).toEqual([request.operation, 200, ''])
  victim.har.push(request)
  victim.kept.push({ request: nextRequest(victim), atS: aheadS })
}

/** A browser with a key of its own and a page of now: another program, another profile, a private window. */
async function newBrowser(): Promise<Viewer> {
  const browser = reelgate.newViewer()
  browser.state.headers = CLOSE
  await browser.openPage('', CLOSE)
  return browser
}

const joined = (proof: string, at: number, part: string) => proof.split('.').with(at, part).join('.')

/** A nonce is valid for 120 s at most. */
const NONCE_LIFE_S = 120

/** One try each: what is sent by a client that is not the viewer's browser. */
const TRIES: Record<string, (victim: Victim, victims: readonly Victim[], thief: Viewer) => Promise<Sent[]>> = {
  'curl with everything copied': async ({ har }) => [await send(pick(har))],
  'another address': async ({ har }) => [await send(pick(har), `127.0.0.${pick([2, 3, 4])}`)],
  'the whole HAR in its order': async ({ har }) => {
    const sent: Sent[] = []
    for (const request of har.slice(0, 8)) sent.push(await send(request))
    return sent
  },
  'another browser with the session’s address': async ({ viewer, har }, _, thief) => {
    const { operation, argument, body, method, path } = pick(har.slice(1))
    return [await send({ method, path, body, proof: thief.proof({ operation, session: viewer.state.session, argument, body }) })]
  },
  'another profile with the page’s address': async ({ otp }, _, thief) => {
    const { status, body } = await thief.redeem(otp)
    return [{ status, code: String(body.code) }]
  },
  'another browser with the viewer’s public key': async ({ viewer, otp }, _, thief) => {
    const body = JSON.stringify({ ...thief.redeemBody(otp), publicKey: viewer.publicKeyText() })
    return [await send({ method: 'POST', path: '/play/redeem', body, proof: thief.proof({ operation: 'redeem', body }) })]
  },
  'a proof with the nonce of now': async ({ har }, _, thief) => {
    const request = pick(har)
    return [await send({ ...request, proof: joined(request.proof, 3, thief.state.nonce) })]
  },
  'a proof with a nonce of a time to come': async ({ har }) => {
    const request = pick(har)
    return [await send({ ...request, proof: joined(request.proof, 3, randomBytes(18).toString('base64url')) })]
  },
  'a proof with a later number': async ({ har }) => {
    const request = pick(har)
    return [await send({ ...request, proof: joined(request.proof, 2, String(Math.floor(chance.between(1, 9_999_999)))) })]
  },
  'a proof of another page load': async ({ har }) => {
    const request = pick(har)
    return [await send({ ...request, proof: joined(request.proof, 1, randomBytes(16).toString('base64url')) })]
  },
  'another path': async ({ har, viewer }) => {
    const rest = pick(['key/0', 'key/1', 'key/2', 'playlist/main', 'playlist/1', 'playlist/3', 'file/storyboard'])
    const { proof } = pick(har.filter(({ path }) => !path.endsWith(rest)))
    return [await send({ method: 'GET', proof, path: `/play/${viewer.state.session}/${rest}` })]
  },
  'another method': async ({ har }) => {
    const request = pick(har)
    const isGet = request.method === 'GET'
    const method = pick(isGet ? ['POST', 'PUT', 'DELETE', 'HEAD'] : ['GET', 'PUT', 'DELETE', 'HEAD'])
    const body = method === 'HEAD' || method === 'GET' ? undefined : (request.body ?? '{}')
    return [await send({ ...request, method, body })]
  },
  'another session': async ({ har, viewer }, victims) => {
    const other = pick(victims.filter((victim) => victim.viewer !== viewer))
    const request = pick(har.slice(1))
    return [await send({ ...request, path: request.path.replace(viewer.state.session, other.viewer.state.session) })]
  },
  'another body': async ({ har }) => {
    const request = pick(har.filter(({ body }) => body !== undefined))
    return [await send({ ...request, body: `${request.body} ` })]
  },
  'a proof that was never sent, minutes later': async ({ kept }) => {
    const old = kept.filter(({ atS }) => atS <= aheadS - NONCE_LIFE_S)
    if (old.length === 0) return []
    const sent = await send(pick(old).request)
    expect(sent).toEqual({ status: 401, code: 'proof-stale' })
    return [sent]
  },
  'two tabs with one request': async (victim) => {
    const request = nextRequest(victim)
    victim.har.push(request)
    const sent = await Promise.all([send(request), send(request)])
    expect(sent.filter(({ status }) => status < 300)).toHaveLength(1) // the browser's own
    return sent.filter(({ status }) => status >= 300)
  },
}

test(`P01, P04: of ${rounds(200, 12_000)} tries to play with what was recorded of a viewer none succeeds, also later and over restarts, and the viewers play on`, async () => {
  const total = rounds(200, 12_000)
  const restartEvery = total / rounds(2, 20)
  const names = Object.keys(TRIES)
  const outcomes = new Map<string, number>()
  const successes: string[] = []
  let victims: Victim[] = []
  let thieves: Viewer[] = []
  let tries = 0
  let nextRestart = restartEvery
  const atStart = async () => {
    victims = [...victims.slice(-4), ...(await Promise.all([1, 2, 3, 4].map(newVictim)))]
    thieves = await Promise.all([1, 2, 3, 4].map(newBrowser))
  }
  await atStart()
  while (tries < total) {
    await passS(pick([0, 40, 130]))
    for (const victim of victims) await playOn(victim)
    for (const thief of thieves) await thief.openPage('', CLOSE)
    await Promise.all(
      victims.map(async (victim) => {
        for (let n = 0; n < 12; n++) {
          const name = pick(names)
          for (const { status, code } of (await TRIES[name]?.(victim, victims, pick(thieves))) ?? []) {
            tries++
            if (status < 300) successes.push(`${name}: ${status}`)
            const outcome = `${status} ${code}`
            outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
          }
        }
      }),
    )
    expect(successes).toEqual([])
    if (tries < nextRestart) continue
    nextRestart += restartEvery
    await reelgate.kill()
    await reelgate.restart()
    for (const { viewer } of victims) {
      await viewer.openPage('', CLOSE)
      viewer.newPage()
      expect((await viewer.reopen()).status).toBe(200)
    }
    await atStart()
  }
  process.stderr.write(
    `replay matrix: ${tries} tries, ${successes.length} successes: ${JSON.stringify(Object.fromEntries(outcomes))}\n`,
  )
})
