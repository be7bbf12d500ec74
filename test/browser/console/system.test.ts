import type { Browser, Locator } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'
import { dataPaths } from '../../../src/config/data-paths.ts'
import { sendCommand } from '../../../src/control/socket.ts'
import { startSharedReelgate } from '../../in-process.ts'
import { changeRows, readRows } from '../../rows.ts'
import { sampledTests } from '../../sample.ts'
import { startChromium } from '../chromium.ts'
import { complaintsOf, consoleUrl, findFaults, keepPicture, newContext, openConsole, openTab, PHONE, tabTo } from './console.ts'

const { test, draw } = sampledTests('people and settings', 4)

// Who gets into the console, the settings of an account, and the installation's accounts.

declare function getComputedStyle(element: unknown): { readonly borderTopColor: string; readonly outlineStyle: string }

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
beforeAll(async () => {
  chromium = await startChromium()
  reelgate = await startSharedReelgate()
})
afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

const open = (path: string, options = {}) => openConsole(chromium, reelgate, { path, ...options })
const command = (name: 'worker add', args: object) => sendCommand(dataPaths(reelgate.dataDir).controlSocket, name, args)
const PASSWORD = 'a lamp in the projection room'

test('by keyboard alone a person is invited, who sets a password by the link, sees no more than a viewer may, and is deleted', async () => {
  const page = await open('/system/people')
  await tabTo(page, 'button:has-text("Invite a person")')
  await page.keyboard.press('Enter')
  await page.getByRole('textbox', { name: 'Name' }).waitFor()
  await page.keyboard.type('ann@example.org')
  await page.keyboard.press('Enter')
  await page.getByRole('dialog', { name: 'A link for one person' }).waitFor()
  const link = (await page.getByRole('group', { name: 'Sign-in link' }).textContent()) ?? ''
  await tabTo(page, 'button:has-text("Close")')
  await page.keyboard.press('Enter')
  await page.getByRole('table', { name: 'People' }).getByText('Invited').waitFor()

  const theirs = await openTab(await newContext(chromium))
  await theirs.goto(link.replace('127.0.0.1', 'localhost'))
  await theirs.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await theirs.getByRole('button', { name: 'Set the password' }).click()
  await theirs.getByRole('heading', { name: 'Videos' }).waitFor()
  await theirs.getByRole('link', { name: 'System' }).click()
  await theirs.getByText('This browser').waitFor()
  const parts = theirs.getByRole('navigation', { name: 'System' })
  expect(await parts.getByRole('link').allTextContents()).toEqual(['You ', 'Settings ', 'Queue '])

  await page.reload()
  await tabTo(page, 'button[aria-label="Change ann@example.org"]')
  await page.keyboard.press('Enter')
  await page.getByRole('menuitem', { name: 'Delete' }).waitFor()
  const chosen = page.locator('[role=menuitem]:has-text("Delete"):focus')
  for (let presses = 0; presses < 10 && (await chosen.count()) === 0; presses++) await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await page.getByRole('dialog', { name: 'Delete ann@example.org?' }).waitFor()
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.getByText('ann@example.org has been deleted.').waitFor()
  await theirs.reload()
  await theirs.getByRole('heading', { name: 'Sign in to Reelgate' }).waitFor()
  expect([...complaintsOf(page), ...complaintsOf(theirs)]).toEqual([])
})

test('D27: a person sets an e-mail address on their own page, and an owner in People and in an invitation', async () => {
  const page = await open('/system/you', { viewport: PHONE })
  await page.getByLabel('E-mail address').fill('owner@example.org')
  await page.getByRole('button', { name: 'Save the address' }).click()
  await page.getByText('The e-mail address has been saved.').waitFor()
  expect(await findFaults(page)).toEqual([])

  await page.getByRole('link', { name: 'People' }).click()
  await page.getByRole('cell', { name: 'owner@example.org' }).waitFor()
  await page.getByRole('button', { name: 'Invite a person' }).click()
  await page.getByRole('textbox', { name: 'Name' }).fill('Ben')
  await page.getByLabel('E-mail address').fill('ben@example.org')
  await page.getByRole('button', { name: 'Make a link' }).click()
  await page.getByRole('dialog', { name: 'A link for one person' }).getByRole('button', { name: 'Close' }).click()
  await page.getByRole('cell', { name: 'ben@example.org' }).waitFor()
  await page.getByRole('button', { name: 'Change Ben' }).click()
  await page.getByRole('menuitem', { name: 'Change the e-mail address' }).click()
  const dialog = page.getByRole('dialog', { name: 'E-mail address of Ben' })
  await dialog.getByLabel('E-mail address').fill('')
  await keepPicture(page, 'email-dialog')
  expect(await findFaults(page)).toEqual([])
  await dialog.getByRole('button', { name: 'Change' }).click()
  await page.getByRole('cell', { name: 'None' }).waitFor()
  expect(complaintsOf(page)).toEqual([])
})

test('F-130: what can be chosen has an edge on dark pages, and the focus of tags is drawn around all of them', async () => {
  const page = await open('/system/people', { colorScheme: 'dark' })
  await page.getByRole('button', { name: 'Invite a person' }).click()
  const edgeOf = (input: Locator) => input.evaluate((element) => getComputedStyle(element).borderTopColor)
  const radio = page.getByRole('radio', { name: 'Owner' })
  expect(await edgeOf(radio)).toBe(await edgeOf(page.getByRole('checkbox', { name: 'Administrator' })))

  const { videoId } = await reelgate.owner.credentials('Lesson 1')
  await page.goto(`${consoleUrl(reelgate)}/videos/${videoId}`)
  const tags = page.getByRole('combobox', { name: 'Tags' })
  await tags.focus()
  const outlines = await tags.evaluate((element) =>
    [element, element.closest('.mantine-Input-input') ?? element].map((drawn) => getComputedStyle(drawn).outlineStyle),
  )
  expect(outlines).toEqual(['none', 'solid'])
})

test('other browsers of the person are listed, and signed out', async () => {
  const page = await open('/system/you')
  const other = await open('/videos')
  await other.getByRole('heading', { name: 'Videos' }).waitFor()
  await page.reload()
  await page.getByRole('button', { name: 'Sign out everywhere else' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Sign out', exact: true }).click()
  await page.getByRole('button', { name: 'Sign out everywhere else' }).waitFor({ state: 'detached' })
  await other.reload()
  await other.getByRole('heading', { name: 'Sign in to Reelgate' }).waitFor()
})

test('on a phone the settings of the account are changed', async () => {
  const page = await open('/system/settings', { viewport: PHONE, hasTouch: true })
  await page.getByRole('textbox', { name: 'Screens of one viewer' }).fill('2')
  await page.getByRole('switch', { name: 'The API deletes into the trash' }).check()
  await page.getByRole('switch', { name: 'All videos equally loud' }).uncheck()
  await page.getByRole('button', { name: 'Save the settings' }).tap()
  await page.getByText('The settings have been saved.').waitFor()
  expect(await (await reelgate.owner.call('GET', '/api/account')).json()).toMatchObject({
    ...{ streamLimit: 2, deletesToTrash: true, normalizesLoudness: false },
  })
})

test('an administrator creates an account, looks into it, which its audit log says, and disables it', async () => {
  const page = await open('/system/accounts')
  await page.getByRole('button', { name: 'Create an account' }).click()
  await page.getByRole('textbox', { name: 'Name' }).fill('A school')
  await page.getByRole('button', { name: 'Create', exact: true }).click()
  await page.getByRole('button', { name: 'Look into A school' }).click()
  await page.getByRole('heading', { name: 'Videos' }).waitFor()
  await page
    .getByRole('button', { name: /^Account menu of/ })
    .getByText('A school')
    .waitFor()
  await page.getByRole('link', { name: 'System' }).click()
  await page.getByRole('link', { name: 'Audit log' }).click()
  await page.getByText('An administrator looked into the account').waitFor()

  await page.getByRole('link', { name: 'Accounts' }).click()
  await page.getByRole('button', { name: 'Look into owner' }).click()
  await page.getByRole('heading', { name: 'Videos' }).waitFor()
  await page.getByRole('link', { name: 'System' }).click()
  await page.getByRole('link', { name: 'Accounts' }).click()
  await page.getByRole('button', { name: 'Disable A school' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Disable' }).click()
  await page.getByText('Disabled').waitFor()
  expect(complaintsOf(page)).toEqual([])
})

test('an administrator changes the limits of an account, which its owners then see', async () => {
  const page = await open('/system/accounts')
  await page.getByRole('button', { name: 'Change the limits of owner' }).click()
  const dialog = page.getByRole('dialog', { name: 'Limits of owner' })
  await dialog.getByRole('textbox', { name: 'Rate limits, times the usual' }).fill('3')
  expect(await findFaults(page)).toEqual([])
  await dialog.getByRole('textbox', { name: 'Storage, in GB' }).fill('1.5')
  await dialog.getByRole('switch', { name: 'May import from addresses' }).uncheck()
  await dialog.getByRole('button', { name: 'Save the limits' }).click()
  await page.getByText('The limits of owner have been changed.').waitFor()
  const account = async () => (await reelgate.owner.call('GET', '/api/account')).json()
  expect(await account()).toMatchObject({ limitFactor: 3, mayImport: false, mayUpload: true, storageLimitBytes: 1_500_000_000 })

  await page.getByRole('link', { name: 'Develop' }).click()
  await page.getByRole('link', { name: 'Limits' }).click()
  await page.getByText('3 times the usual ones').waitFor()
  await page.getByText('at most 1.5 GB').waitFor()
  await page.getByText('Not allowed').waitFor()
  expect(complaintsOf(page)).toEqual([])
})

test('how long data is kept, and what to run for a backup and a new master key, is said in words', async () => {
  const page = await open('/system/settings')
  await page.getByText('90 days, with alerts and the names of viewers').getByText('REELGATE_VIEWER_DATA_DAYS').waitFor()
  await page.getByRole('link', { name: 'Server' }).click()
  await page.getByText('None yet: on the server, run').waitFor()
  await page.getByRole('group', { name: 'Every night, on the server' }).getByText('reelgate backup ').waitFor()
  await page.getByText('Not in the last year').waitFor()
  await page.getByText('REELGATE_MASTER_KEY_FILE').waitFor()
  expect(complaintsOf(page)).toEqual([])
})

test('J23: workers are listed with their state, drained, resumed and removed', async () => {
  await command('worker add', { name: 'office', trusted: true })
  await command('worker add', { name: 'rented', trusted: false })
  changeRows(reelgate, `update worker set suspended_reason = 'segment 3 of rendition 2 shows other frames' where name = 'rented'`)
  changeRows(reelgate, `update worker set last_seen_at_s = 1000, speed = 2.25 where name = 'office'`)
  for (const [name, viewport] of [
    ['desktop', { width: 1440, height: 900 }],
    ['phone', PHONE],
  ] as const) {
    const seen = await open('/system/server', { viewport })
    await seen.getByRole('table', { name: 'Workers' }).scrollIntoViewIfNeeded()
    await keepPicture(seen, `workers-${name}`)
    expect(await findFaults(seen)).toEqual([])
  }
  const page = await open('/system/server')
  const row = (name: string) => page.getByRole('table', { name: 'Workers' }).getByRole('row', { name })
  await row('office (trusted)').getByText('Silent').waitFor()
  await row('rented').getByText('Suspended: segment 3 of rendition 2 shows other frames').waitFor()
  await page.getByRole('button', { name: 'Drain office' }).click()
  await page.getByText('office finishes its chunks and gets no more.').waitFor()
  await row('office').getByText('Drained').waitFor()
  await page.getByRole('button', { name: 'Resume rented' }).click()
  await row('rented').getByText('Silent').waitFor()
  await page.getByRole('button', { name: 'Remove rented' }).click()
  await page.getByRole('dialog', { name: 'Remove rented?' }).getByRole('button', { name: 'Remove' }).click()
  await row('rented').waitFor({ state: 'detached' })
  expect(readRows(reelgate, 'select name, drained from worker')).toEqual([{ name: 'office', drained: 1 }])
  expect(complaintsOf(page)).toEqual([])
})

draw()
