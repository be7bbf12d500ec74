import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { createOwner } from '../../client.ts'
import { type Reelgate, startSharedReelgate } from '../../in-process.ts'
import { type Receivers, startReceivers, verify } from '../../webhooks/receiver.ts'
import { startChromium } from '../chromium.ts'
import { startSite } from '../site.ts'
import { complaintsOf, openConsole, PHONE, tabTo } from './console.ts'

// An owner connects a site: its keys and its webhooks.

let reelgate: Reelgate & { remove(): Promise<void> }
let receivers: Receivers
let chromium: Browser
let site: ReturnType<typeof startSite>
beforeAll(async () => {
  site = startSite()
  chromium = await startChromium()
  receivers = await startReceivers()
  const limits = { otp: { ip: 1000, key: 2, account: 1000 } }
  reelgate = await startSharedReelgate({
    env: { REELGATE_OUTBOUND_ALLOW: receivers.host, REELGATE_LIMITS: JSON.stringify(limits) },
  })
})
afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
  await receivers?.close()
  site?.close()
})

const open = (path: string, options = {}) => openConsole(chromium, reelgate, { path, ...options })

/** What the API answers to a key. */
async function statusWith(apiKey: string): Promise<number> {
  return (await createOwner(reelgate.url, apiKey).call('GET', '/api/videos')).status
}

test('by keyboard alone: a key is created with what it may do, works, is rotated, and is refused after it was revoked', async () => {
  const page = await open('/develop/keys')
  const secret = () => page.getByRole('group', { name: 'API secret' }).textContent()
  await tabTo(page, 'button:has-text("Create a key")')
  await page.keyboard.press('Enter')
  await page.getByRole('textbox', { name: 'What it is for' }).waitFor()
  await page.keyboard.type('The site')
  await tabTo(page, 'input[value="viewer"]')
  await page.keyboard.press('Space')
  await page.keyboard.press('Enter')
  await page.getByRole('dialog', { name: 'The secret of the key' }).waitFor()
  const first = (await secret()) ?? ''
  expect(await statusWith(first)).toBe(200)
  await page.keyboard.press('Escape') // does not lose it
  expect(await secret()).toBe(first)
  await tabTo(page, 'button:has-text("Close")')
  await page.keyboard.press('Enter')

  await tabTo(page, 'button[aria-label="Rotate The site"]')
  await page.keyboard.press('Enter')
  await page.getByRole('dialog', { name: 'Rotate The site?' }).waitFor()
  await tabTo(page, 'button[type=submit]')
  await page.keyboard.press('Enter')
  await page.getByRole('dialog', { name: 'The secret of the key' }).waitFor()
  const second = (await secret()) ?? ''
  expect(await Promise.all([first, second].map(statusWith))).toEqual([200, 200])
  await tabTo(page, 'button:has-text("Close")')
  await page.keyboard.press('Enter')

  for (let left = 2; left > 0; left--) {
    await expect.poll(() => page.getByRole('button', { name: 'Revoke The site' }).count()).toBe(left)
    await tabTo(page, 'button[aria-label="Revoke The site"]')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'Revoke The site?' }).waitFor()
    await tabTo(page, 'button[type=submit]')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  }
  await page.getByRole('table', { name: 'Keys that are no longer valid' }).getByText('The site').nth(1).waitFor()
  expect(await Promise.all([first, second].map(statusWith))).toEqual([401, 401])
  expect(complaintsOf(page)).toEqual([])
})

/** In a browser, from a page of this origin: begins an upload with a token. @returns the answer as the page reads it */
async function beginFromPage(origin: string, token: string): Promise<unknown> {
  const context = await chromium.newContext()
  onTestFinished(() => context.close())
  const page = await context.newPage()
  await page.goto(`${origin}/homework`)
  return page
    .evaluate(
      async ([endpoint = '', token]) => {
        const headers = { Authorization: `Bearer ${token}`, 'Tus-Resumable': '1.0.0', 'Upload-Length': '10' }
        const answer = await fetch(endpoint, { method: 'POST', headers: { ...headers, 'Upload-Metadata': 'filename YQ==' } })
        const text = await answer.text()
        return [answer.status, text, answer.headers.get('Location'), answer.headers.get('Reelgate-Video-Id')]
      },
      [`${reelgate.url}/api/uploads`, token],
    )
    .catch((error) => String(error))
}

test('a page of another site uploads with a token in a real browser, is seen in the console, and is refused once the token was revoked', async () => {
  const { origin } = new URL(site.put('<h1>Homework</h1>', 'school.localhost'))
  const body = { origin, title: 'Homework', maxFiles: 2, reference: 'Anna' }
  const made = await reelgate.owner.call('POST', '/api/upload-tokens', { body })
  const { token } = (await made.json()) as { token: string }
  const begun = [201, '', expect.stringContaining('/api/uploads/'), expect.stringMatching(/^[0-9a-f]{32}$/)]
  expect(await beginFromPage(origin, token)).toEqual(begun)
  expect(await beginFromPage(origin.replace('school', 'evil'), token)).toMatch(/Failed to fetch/)

  const page = await open('/develop/keys')
  const row = page.getByRole('table', { name: 'Upload tokens' }).getByRole('row', { name: 'Anna' })
  expect(await row.textContent()).toContain(`Homework${origin}1 of 2`)
  await page.getByRole('button', { name: 'Revoke the token for Anna' }).click()
  await page.getByRole('dialog', { name: 'Revoke the token for Anna?' }).getByRole('button', { name: 'Revoke' }).click()
  await page.getByRole('heading', { name: 'Upload tokens' }).waitFor({ state: 'detached' })
  await reelgate.owner.call('POST', '/api/upload-tokens', { body }) // so that the browser may ask
  expect(await beginFromPage(origin, token)).toEqual([401, expect.stringContaining('revoked'), null, null])
  expect(complaintsOf(page)).toEqual([])
})

test('on a phone a webhook is added, tested with the secret that was shown, replayed, switched off and deleted', async () => {
  const receiver = receivers.newReceiver()
  const page = await open('/develop/webhooks', { viewport: PHONE, hasTouch: true })
  await page.getByRole('button', { name: 'Add a webhook' }).tap()
  await page.getByRole('textbox', { name: 'Address' }).fill(receiver.url)
  await page.getByRole('button', { name: 'Add', exact: true }).tap()
  await page.getByRole('dialog', { name: 'The secret of the webhook' }).waitFor()
  const secret = (await page.getByRole('group', { name: 'Signing secret' }).textContent()) ?? ''
  await page.getByRole('button', { name: 'Close' }).tap()

  await page.getByRole('link', { name: receiver.url }).tap()
  await page.getByRole('button', { name: 'Send a test event' }).tap()
  await page.getByText('Your server accepted the test event, with status').waitFor()
  const [sent] = await receiver.until(1)
  if (!sent) throw new Error('No event')
  expect(verify(secret, sent)).toMatchObject({ event: 'test' })

  const { videoId } = await reelgate.owner.credentials('To be deleted')
  await reelgate.owner.call('DELETE', `/api/videos?videos=${videoId}`)
  await receiver.until(2)
  await page.reload()
  const deliveries = page.getByRole('table', { name: 'Deliveries' })
  await deliveries.getByText('Delivered').waitFor()
  await deliveries.getByRole('button', { name: 'Show delivery 1' }).tap()
  expect(await page.getByRole('group', { name: 'Body' }).textContent()).toContain(videoId)
  await page.getByRole('button', { name: 'Close' }).tap()
  await deliveries.getByRole('button', { name: 'Send again: delivery 1' }).tap()
  await receiver.until(3)

  await page.getByRole('button', { name: 'Switch off' }).tap()
  await page.getByRole('button', { name: 'Switch on' }).waitFor()
  await page.getByRole('button', { name: 'Delete' }).tap()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).tap()
  await page.getByText('No webhooks.').waitFor()
  expect(complaintsOf(page)).toEqual([])
})

test('what every link has is set once for the account, shown again, and left as it is where the API has set more', async () => {
  const page = await open('/develop/defaults')
  await page.getByRole('textbox', { name: 'Site' }).fill('https://school.example')
  await page.getByRole('button', { name: 'Save the defaults' }).click()
  await page.getByRole('alert').getByText('whitelisthref').waitFor()
  await page.getByRole('textbox', { name: 'Site' }).fill('school.example')
  await page.getByRole('textbox', { name: 'Seconds to open a link' }).fill('300')
  await page.getByRole('switch', { name: 'Show a text over the picture' }).check()
  await page.getByRole('textbox', { name: 'Text', exact: true }).fill('{email}')
  await page.getByText('ann@example.org').waitFor() // as it will look
  await page.getByText('Your site must send viewer.email with each OTP').waitFor()
  await page.getByRole('button', { name: 'Save the defaults' }).click()
  await page.getByText('The defaults have been saved. Your site must send viewer.email with each OTP').waitFor()
  const read = async () => (await reelgate.owner.call('GET', '/api/otp-defaults')).json()
  const saved = { whitelisthref: 'school.example', ttl: 300, annotate: [expect.objectContaining({ text: '{email}' })] }
  expect(await read()).toEqual(saved)
  await page.reload()
  expect(await page.getByRole('textbox', { name: 'Site' }).inputValue()).toBe('school.example')
  expect(await page.getByRole('textbox', { name: 'Seconds to open a link' }).inputValue()).toBe('300')

  const marks = ['{email}', '{ip}'].map((text) => ({ type: 'text', text, x: '3%', y: '4%' }))
  await reelgate.owner.call('PUT', '/api/otp-defaults', { body: { annotate: marks } })
  await page.reload()
  await page.getByText('These options were set over the API').waitFor()
  expect(await page.getByRole('button', { name: 'Save the defaults' }).count()).toBe(0)
  await reelgate.owner.call('PUT', '/api/otp-defaults', { body: {} })
  expect(complaintsOf(page)).toEqual([])
})

test('a key that asked far too often is banned, and the owner lifts its ban by keyboard alone', async () => {
  const body = { name: 'A loop', permissions: ['otpCreator'] }
  const { secret } = (await (await reelgate.owner.call('POST', '/api/keys', { body })).json()) as { secret: string }
  const { videoId } = await reelgate.owner.credentials('A video')
  const loop = createOwner(reelgate.url, secret)
  const FLOOD = 5 * 2 + 1
  for (let calls = 0; calls < FLOOD; calls++) await loop.call('POST', `/api/videos/${videoId}/otp`, { body: {} })

  const page = await open('/develop/limits')
  await page.getByRole('table', { name: 'Bans' }).getByText('Issuing OTPs').waitFor()
  await tabTo(page, 'button[aria-label="Lift the ban of The key A loop"]')
  await page.keyboard.press('Enter')
  await page.getByText('The ban has been lifted.').waitFor()
  await page.getByText('Nothing is banned.').waitFor()
  expect(await (await reelgate.owner.call('GET', '/api/bans')).json()).toEqual({ rows: [] })
  expect(complaintsOf(page)).toEqual([])
})
