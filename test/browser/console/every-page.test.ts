import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSharedReelgate } from '../../in-process.ts'
import { sampleOf } from '../../sample.ts'
import { makeVideo } from '../../videos.ts'
import type { Viewer } from '../../viewer.ts'
import { haveWatched } from '../../viewers/watched.ts'
import { type Receivers, startReceivers, webhooksOf } from '../../webhooks/receiver.ts'
import { startChromium } from '../chromium.ts'
import { addCaptions, complaintsOf, consoleUrl, DESKTOP, findFaults, keepPicture, openConsole, PHONE } from './console.ts'

// Every page of the console in an account where much has happened: what axe finds, what is too wide, what the browser complains of.

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
let receivers: Receivers
let webhookId: string
let viewer: Viewer
beforeAll(async () => {
  chromium = await startChromium()
  receivers = await startReceivers()
  reelgate = await startSharedReelgate({
    ...{ video: await makeVideo(), title: 'Lesson 12 – Light' },
    env: { REELGATE_OUTBOUND_ALLOW: receivers.host },
  })
  const receiver = receivers.newReceiver()
  webhookId = (await webhooksOf(reelgate.owner).create(receiver.url, '*')).uuid
  viewer = reelgate.newViewer()
  const otp = await reelgate.owner.issueOtp(reelgate.videoId, { userId: 'reader-4711' })
  await viewer.redeem(otp)
  await viewer.key(0)
  await reelgate.newViewer().redeem(otp) // refused, and an alert
  haveWatched(reelgate, 'reader-4711', 2)
  await addCaptions(reelgate, 'en', [['00:00.000', '00:01.500', 'A first line']])
  const watermark = { type: 'rtext', text: '{email} {ip}', color: '0xFFFFFF', alpha: '0.6', size: '22' }
  await reelgate.owner.call('PUT', `/api/videos/${reelgate.videoId}/otp-defaults`, { body: { annotate: [watermark] } })
  await reelgate.owner.credentials('Lesson 13 – Shadow')
})
afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
  await receivers?.close()
})

type PageToVisit = {
  name: string
  path: string | (() => string)
  /** What is on it when it is complete. */
  shows: (page: Page) => Promise<void>
}

const heading = (name: string) => (page: Page) => page.getByRole('heading', { name, level: 1 }).waitFor()

const preview = (page: Page) => page.frameLocator('iframe[title="Player with these options"]')

const PAGES: readonly PageToVisit[] = [
  { name: 'videos', path: '/videos', shows: (page) => page.getByRole('link', { name: 'Lesson 12 – Light' }).waitFor() },
  ...(
    [
      ['details', (page: Page) => page.getByRole('textbox', { name: 'Title' })],
      ['audio', (page: Page) => page.getByRole('button', { name: 'Edit sound' })],
      ['chapters', (page: Page) => page.getByRole('button', { name: 'Save the chapters' })],
      ['captions', (page: Page) => page.getByRole('table', { name: 'Captions' })],
      ['trim', (page: Page) => page.getByRole('button', { name: 'Replace file' })],
      ['protection', (page: Page) => page.getByRole('textbox', { name: 'Site' })],
      ['files', (page: Page) => page.getByText('Video rendition').first()],
      ['statistics', (page: Page) => page.getByRole('application', { name: 'Viewers of each part.' })],
      ['history', (page: Page) => page.getByText('Encoding finished')],
    ] as const
  ).map(([tab, find]) => ({
    name: `video-${tab}`,
    path: () => `/videos/${reelgate.videoId}?tab=${tab}`,
    shows: (page: Page) => find(page).waitFor(),
  })),
  { name: 'activity', path: '/activity', shows: (page) => page.getByRole('application', { name: 'Bandwidth.' }).waitFor() },
  { name: 'trash', path: '/trash', shows: heading('Trash') },
  { name: 'import', path: '/videos/import', shows: (page) => page.getByRole('heading', { level: 1 }).waitFor() },
  { name: 'welcome', path: '/welcome', shows: heading('Your first video') },
  { name: 'alerts', path: '/alerts', shows: (page) => page.getByText('A second browser tried a link of reader-4711').waitFor() },
  {
    name: 'viewers',
    path: '/viewers',
    async shows(page) {
      // The first one has ended where the pages before took minutes: without beats a session is forgotten.
      viewer = reelgate.newViewer()
      const otp = await reelgate.owner.issueOtp(reelgate.videoId, {
        userId: 'reader-4711',
        viewer: { email: 'reader-4711@example.org' },
      })
      await viewer.redeem(otp)
      await viewer.key(0)
      await page.getByRole('link', { name: 'reader-4711' }).waitFor()
    },
  },
  { name: 'watched', path: '/viewers/watched', shows: (page) => page.getByRole('link', { name: 'reader-4711' }).waitFor() },
  { name: 'refused', path: '/viewers/refused', shows: (page) => page.getByText('The link was already used').waitFor() },
  { name: 'viewer', path: '/viewers/reader-4711', shows: (page) => page.getByRole('img', { name: '0:00 to 0:02' }).waitFor() },
  {
    name: 'code',
    path: '/develop',
    async shows(page) {
      await page.getByRole('group', { name: 'HTML code' }).waitFor()
      await page.getByText('How the player looks and starts').click()
      await page.getByText('What your server asks for with each link').click()
      await preview(page).locator('body[data-state=ready]').waitFor()
    },
  },
  {
    name: 'defaults',
    path: '/develop/defaults',
    shows: (page) => page.getByRole('button', { name: 'Save the defaults' }).waitFor(),
  },
  { name: 'keys', path: '/develop/keys', shows: (page) => page.getByRole('button', { name: 'Create a key' }).waitFor() },
  { name: 'webhooks', path: '/develop/webhooks', shows: (page) => page.getByRole('table', { name: 'Webhooks' }).waitFor() },
  {
    name: 'webhook',
    path: () => `/develop/webhooks/${webhookId}`,
    shows: (page) => page.getByRole('table', { name: 'Deliveries' }).waitFor(),
  },
  {
    name: 'learning platforms',
    path: '/develop/platforms',
    shows: (page) => page.getByRole('button', { name: 'Connect a platform' }).waitFor(),
  },
  { name: 'limits', path: '/develop/limits', shows: (page) => page.getByText('Nothing is banned.').waitFor() },
  { name: 'you', path: '/system', shows: (page) => page.getByText('This browser').waitFor() },
  { name: 'people', path: '/system/people', shows: (page) => page.getByRole('table', { name: 'People' }).waitFor() },
  {
    name: 'settings',
    path: '/system/settings',
    shows: (page) => page.getByRole('button', { name: 'Save the settings' }).waitFor(),
  },
  { name: 'queue', path: '/system/queue', shows: heading('System') },
  { name: 'audit-log', path: '/system/audit-log', shows: (page) => page.getByRole('table', { name: 'Audit log' }).waitFor() },
  { name: 'server', path: '/system/server', shows: (page) => page.getByRole('table', { name: 'Checks' }).waitFor() },
  { name: 'accounts', path: '/system/accounts', shows: (page) => page.getByRole('table', { name: 'Accounts' }).waitFor() },
  { name: 'not-found', path: '/nothing-here', shows: heading('There is nothing at this address') },
]

const SCREENS = [
  ['light', 'dark', DESKTOP],
  ['dark', 'light', PHONE],
] as const

/** What the colors of a page can break. */
const COLOR_RULES = ['color-contrast', 'link-in-text-block']

// axe takes half a second of processor time for a page: a run draws a screen and a third of the pages. Of a page in its other colors
// only the colors are new.
test.each(sampleOf('screens of the console', SCREENS, 1))(
  'every page is accessible, and as wide as its screen, in %s and %s',
  async (first, second, viewport) => {
    const page = await openConsole(chromium, reelgate, { viewport, colorScheme: first })
    const faults: string[] = []
    for (const { name, path, shows } of sampleOf('pages of the console', PAGES, 6)) {
      await page.goto(`${consoleUrl(reelgate)}${typeof path === 'string' ? path : path()}`)
      await shows(page)
      for (const colorScheme of [first, second]) {
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
        await page.locator(`html[data-mantine-color-scheme=${colorScheme}]`).waitFor()
        await keepPicture(page, `${name}-${viewport.width}-${colorScheme}`)
        for (const fault of await findFaults(page, colorScheme === first ? undefined : COLOR_RULES))
          faults.push(`${name}, ${viewport.width} px, ${colorScheme}: ${fault}`)
      }
    }
    expect(faults).toEqual([])
    expect(complaintsOf(page)).toEqual([])
  },
)
