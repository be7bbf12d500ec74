import { EventEmitter, once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSharedReelgate } from '../in-process.ts'
import { startChromium } from './chromium.ts'
import { lookAtPlayer, openTab, playerAddress } from './player.ts'
import { makeSmallVideo } from './videos.ts'

// O08: an OTP is a bearer secret until it is used, and a browser tells each site it is led to where it came from.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
let video: string
let school: Site
let canary: Site
const requests = new EventEmitter()
const LEADS = ['/link', '/window', '/away', '/lesson']
let lesson = ''
const received: { path: string; referer: string | undefined }[] = []

type Site = { server: Server; url: string }

beforeAll(async () => {
  canary = await startSite((request, response) => {
    received.push({ path: request.url ?? '', referer: request.headers.referer })
    requests.emit(request.url ?? '')
    response.setHeader('Content-Type', 'text/html').end('<!doctype html><title>Elsewhere</title>')
  })
  school = await startSite((_request, response) => {
    response.setHeader('Content-Type', 'text/html').end(`<!doctype html><title>School</title>${lesson}`)
  })
  reelgate = await startSharedReelgate({ video: await makeSmallVideo(), title: 'Small video' })
  video = reelgate.videoId
  chromium = await startChromium()
})

afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
  for (const site of [school, canary]) site?.server.close()
})

test('O08: no site that a page with the player leads to learns the OTP, before it is used or after', async () => {
  for (const used of [false, true]) {
    const otp = await reelgate.owner.issueOtp(video)
    lesson = `<iframe src="${playerAddress(reelgate.url, otp)}" allow="fullscreen" width="800" height="450"></iframe><a href="${canary.url}lesson">More</a>`
    const page = await openTab(await chromium.newContext())
    if (!used) await page.route('**/play/redeem', (route) => route.abort()) // not answered: the link stays in the frame's address
    await page.goto(school.url)
    const frame = page.frames().find((one) => one.url().startsWith(reelgate.url))
    if (!frame) throw new Error('the lesson has no player')
    await lookAtPlayer(page, frame).shows(used ? 'ready' : 'waiting')
    expect(frame.url().includes(otp)).toBe(!used)

    const link = `Object.assign(document.createElement('a'), { href: '${canary.url}link', target: '_blank' })`
    await leadTo(page, frame, 'link', `const link = ${link}; document.body.append(link); link.click()`)
    await leadTo(page, frame, 'window', `window.open('${canary.url}window')`)
    await leadTo(page, frame, 'away', `location.href = '${canary.url}away'`)
    await leadTo(page, page, 'lesson', "document.querySelector('a').click()")
    await page.waitForURL(`${canary.url}lesson`) // a tab that is closed on its way may never be closed
    await page.close()
  }
  expect(received.map(({ path }) => path)).toEqual([...LEADS, ...LEADS])
  // The lesson is a page of the school, and names itself; the player names nothing.
  for (const { path, referer } of received) expect(referer, path).toBe(path === '/lesson' ? school.url : undefined)
})

test('O08: an OTP is given for a POST alone, so that none is in an address that a log or a cache keeps', async () => {
  const secret = reelgate.owner.apiKey
  for (const path of [`/api/videos/${video}/otp`, `/v2/otp?video=${video}&clientSecretKey=${secret}`]) {
    const answer = await fetch(`${reelgate.url}${path}`, { headers: { Authorization: `Apisecret ${secret}` } })
    expect([404, 405], path).toContain(answer.status)
    expect(await answer.text()).not.toMatch(/[A-Za-z0-9]{64}/)
  }
  const given = await fetch(`${reelgate.url}/api/videos/${video}/otp`, {
    method: 'POST',
    headers: { Authorization: `Apisecret ${secret}` },
  })
  expect([given.status, given.headers.get('cache-control')]).toEqual([200, 'no-store'])
  const page = await fetch(playerAddress(reelgate.url, 'A'.repeat(64)))
  expect([page.headers.get('referrer-policy'), page.headers.get('cache-control')]).toEqual(['no-referrer', 'no-store'])
})

/** Has a page or a frame of it do this, and waits until the canary has been asked for the path. */
async function leadTo(page: Page, from: Pick<Page, 'evaluate'>, path: string, script: string): Promise<void> {
  await page.bringToFront() // what was opened before it lies on top, and what lies below may stand still
  const asked = once(requests, `/${path}`)
  await from.evaluate(`setTimeout(() => { ${script} }); undefined`) // it answers before its page is gone
  await asked
}

async function startSite(listener: RequestListener): Promise<Site> {
  const server = createServer((request, response) => {
    if (request.url === '/favicon.ico') response.writeHead(404).end()
    else listener(request, response)
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  return { server, url: `http://localhost:${(server.address() as AddressInfo).port}/` }
}
