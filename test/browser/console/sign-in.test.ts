import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest'
import { createPerson, makeLink, type Person, signIn } from '../../console/person.ts'
import { startSharedReelgate } from '../../in-process.ts'
import { changeRows } from '../../rows.ts'
import { sampledTests, sampleOf } from '../../sample.ts'
import { startChromium } from '../chromium.ts'
import { startSite } from '../site.ts'
import { complaintsOf, consoleUrl, findFaults, keepPicture, newContext, openConsole, openTab, PHONE, tabTo } from './console.ts'

const { test, draw } = sampledTests('signing in', 6)

// How an owner gets into the console.

const PASSWORD = 'a lamp in the projection room'

let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let chromium: Browser
beforeAll(async () => {
  reelgate = await startSharedReelgate()
  chromium = await startChromium()
})
afterAll(async () => {
  await chromium?.close()
  await reelgate?.remove()
})

/** Another owner in the account, each for one test alone: what it sets, no other test finds. */
async function invite(name: string): Promise<Person> {
  const owner = await signIn(reelgate)
  const { link } = await owner.get<{ link: { url: string } }>('POST', '/users', { name, role: 'owner' })
  const person = createPerson(reelgate.url)
  await person.get('POST', '/sign-in/link', { token: new URL(link.url).hash.slice(1) })
  return person
}

/** The same with a password. */
async function inviteWithPassword(name: string): Promise<void> {
  await (await invite(name)).get('PUT', '/sign-in/password', { password: PASSWORD })
}

test('D09: a page of another site that frames the console shows nothing of it', async () => {
  const site = startSite()
  onTestFinished(() => void site.close())
  const page = await openConsole(chromium, reelgate)
  await page.getByRole('heading', { name: 'Videos' }).waitFor()
  await page.goto(site.put(`<iframe src="${consoleUrl(reelgate)}/"></iframe>`, '127.0.0.1'))
  const [, frame] = page.frames()
  await expect.poll(() => frame?.url()).toBe('chrome-error://chromewebdata/')
})

test('a one-time link signs the owner in, who sets a password, and signs in with it from then on', async () => {
  const page = await openTab(await newContext(chromium))
  const link = `${consoleUrl(reelgate)}/link#${await makeLink(reelgate)}`
  await page.goto(link)
  await page.getByText('You are the first person here').waitFor()
  await page.reload() // before anything was set
  await page.getByText('You are the first person here').waitFor()
  await page.goto('about:blank')
  await page.goto(link) // is spent, but this browser is the one that opened it
  await page.getByText('You are the first person here').waitFor()
  await page.getByLabel('Your name').fill('owner')
  expect(page.url()).toBe(`${consoleUrl(reelgate)}/link`) // the spent link is not kept in the history

  await page.getByLabel('Password', { exact: true }).fill('too short')
  await page.getByRole('button', { name: 'Set the password' }).click()
  expect(page.url()).toContain('/link') // the browser itself says how long it must be
  await page.getByLabel('Password', { exact: true }).fill('owner owner owner')
  await page.getByRole('button', { name: 'Set the password' }).click()
  await page.getByRole('alert').getByText('This password is easy to guess.').waitFor()
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await page.getByRole('button', { name: 'Set the password' }).click()
  await page.getByRole('heading', { name: 'Videos' }).waitFor()

  await page.getByRole('button', { name: 'Account menu of owner' }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await page.getByLabel('Name').fill('owner')
  await page.getByLabel('Password', { exact: true }).fill('not the right one')
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('alert').getByText('The name or the password is wrong.').waitFor()
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Videos' }).waitFor()
  expect(complaintsOf(page)).toEqual([])
})

test('a link that was used says so, and names the command that prints a new one', async () => {
  const token = await makeLink(reelgate)
  for (const expected of ['Welcome to Reelgate', 'This link does not work']) {
    const page = await openTab(await newContext(chromium))
    await page.goto(`${consoleUrl(reelgate)}/link#${token}`)
    await page.getByRole('heading', { name: expected }).waitFor()
    if (expected === 'This link does not work')
      expect(await page.getByRole('main').textContent()).toContain('reelgate console link')
  }
})

test('an address of the console leads through the sign-in and then to where it was meant to', async () => {
  await inviteWithPassword('ann')
  const page = await openTab(await newContext(chromium))
  await page.goto(`${consoleUrl(reelgate)}/videos?q=light&view=cards`)
  await page.getByRole('heading', { name: 'Sign in to Reelgate' }).waitFor()
  await page.getByLabel('Name').fill('Ann')
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.waitForURL('**/console/videos?q=light&view=cards')
  expect(await page.getByRole('searchbox').inputValue()).toBe('light')
})

const OTHER_SITES = ['https://evil.example/', '//evil.example/', '/\\evil.example/']
test.each(sampleOf('addresses of another site', OTHER_SITES, 1))(
  '%s, an address of another site, is not where a sign-in leads',
  async (next) => {
    const name = `ben-${OTHER_SITES.indexOf(next)}`
    await inviteWithPassword(name)
    const page = await openTab(await newContext(chromium))
    await page.goto(`${consoleUrl(reelgate)}/sign-in?next=${encodeURIComponent(next)}`)
    await page.getByLabel('Name').fill(name)
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('heading', { name: 'Videos' }).waitFor()
    expect(page.url()).toBe(`${consoleUrl(reelgate)}/videos`)
  },
)

test('when the sign-in has ended meanwhile, the next step leads to signing in, and back', async () => {
  const page = await openConsole(chromium, reelgate, { path: '/videos' })
  await page.getByRole('heading', { name: 'Videos' }).waitFor()
  await page.context().clearCookies()
  await page.reload()
  await page.getByRole('heading', { name: 'Sign in to Reelgate' }).waitFor()
  expect(page.url()).toMatch(/next=\/videos$/)
})

test('D22: by keyboard alone a passkey is added, and signs the owner in; signing out everywhere lists it and removes it', async () => {
  await invite('carla')
  const page = await openConsole(chromium, reelgate, { path: '/system/you', user: 'carla' })
  // Without a password the passkey would be the only way to sign in, and could not be removed.
  await page.getByLabel('New password', { exact: true }).fill(PASSWORD)
  await page.keyboard.press('Enter')
  await page.getByText('The password has been set.').waitFor()
  const browser = await page.context().newCDPSession(page)
  await browser.send('WebAuthn.enable')
  await browser.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      ...{ protocol: 'ctap2', transport: 'internal', automaticPresenceSimulation: true },
      ...{ hasResidentKey: true, hasUserVerification: true, isUserVerified: true },
    },
  })
  await tabTo(page, 'button:has-text("Add a passkey")')
  await page.keyboard.press('Enter')
  await page.getByText('The passkey has been added.').waitFor()

  await page.context().clearCookies()
  await page.goto(`${consoleUrl(reelgate)}/sign-in`)
  await tabTo(page, 'button:has-text("Use a passkey")')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Videos' }).waitFor()

  await page.goto(`${consoleUrl(reelgate)}/system/you`)
  const here = page.getByRole('table', { name: 'Where you are signed in' }).getByRole('row').filter({ hasText: 'This browser' })
  await here.getByText('Passkey').waitFor()
  await openConsole(chromium, reelgate, { user: 'carla' })
  await page.reload()
  await page.getByRole('button', { name: 'Sign out everywhere else' }).click()
  await page.getByRole('dialog').getByRole('checkbox', { name: 'Passkey' }).check()
  await keepPicture(page, 'sign-out-everywhere')
  expect(await findFaults(page)).toEqual([])
  await page.getByRole('dialog').getByRole('button', { name: 'Sign out', exact: true }).click()
  await page.getByText('No passkeys yet.').waitFor()
  await page.context().clearCookies()
  await page.goto(`${consoleUrl(reelgate)}/sign-in`)
  await tabTo(page, 'button:has-text("Use a passkey")')
  await page.keyboard.press('Enter')
  await page.getByRole('alert').getByText('passkey').waitFor()
  expect(complaintsOf(page)).toEqual([])
})

test('D20: who signed in long ago signs in again in place, and what was asked for is then done', async () => {
  await inviteWithPassword('dana')
  const page = await openConsole(chromium, reelgate, { path: '/system/people', user: 'dana', viewport: PHONE })
  await page.getByRole('table', { name: 'People' }).waitFor()
  changeRows(reelgate, 'update sign_in set created_at_s = created_at_s - 601')
  await reelgate.owner.credentials('x') // what is changed behind the server's back, it reads again after its next commit
  await page.getByRole('button', { name: 'Invite a person' }).click()
  await page.getByRole('textbox', { name: 'Name' }).fill('Ed')
  await page.getByRole('button', { name: 'Make a link' }).click()
  const again = page.getByRole('dialog', { name: 'Sign in again' })
  await again.getByLabel('Password of dana').fill('not the right one')
  await page.keyboard.press('Enter')
  await again.getByText('The name or the password is wrong.').waitFor()
  await again.getByLabel('Password of dana').fill(PASSWORD)
  await keepPicture(page, 'sign-in-again')
  expect(await findFaults(page)).toEqual([])
  await page.keyboard.press('Enter')
  await page.getByRole('dialog', { name: 'A link for one person' }).waitFor()
  expect(complaintsOf(page)).toEqual([])
})

test('D21: a link that would replace an open sign-in asks first, and stays valid when the answer is no', async () => {
  const page = await openConsole(chromium, reelgate)
  await page.getByRole('heading', { name: 'Videos' }).waitFor()
  const owner = await signIn(reelgate)
  const { link } = await owner.get<{ link: { url: string } }>('POST', '/users', { name: 'felix', role: 'viewer' })
  const url = `${consoleUrl(reelgate)}/link${new URL(link.url).hash}`
  for (const answer of ['Stay signed in', 'Sign in with the link']) {
    await page.goto('about:blank')
    await page.goto(url)
    await page.getByText('This link signs in felix instead.').waitFor()
    await keepPicture(page, 'link-asks-first')
    await page.getByRole('button', { name: answer }).click()
    if (answer === 'Stay signed in') await page.getByRole('button', { name: 'Account menu of owner' }).waitFor()
    else await page.getByText('You are signed in as felix').waitFor()
  }
  expect(complaintsOf(page)).toEqual([])
})

draw()
