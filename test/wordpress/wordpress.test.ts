import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startChromium } from '../browser/chromium.ts'
import { keepPicture } from '../browser/pictures.ts'
import { lookAtPlayer, openTab } from '../browser/player.ts'
import { makeSmallVideo } from '../browser/videos.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { readRows } from '../rows.ts'
import { quote, startWordPress, type WordPress } from './wordpress.ts'

// The plug-in in Debian's WordPress with MariaDB, behind a page cache, in Chromium. Its own code is tested in every run: plugin.test.ts.

let reelgate: Reelgate & { remove(): Promise<void> }
let site: WordPress
let chromium: Browser
let lesson: string
beforeAll(async () => {
  reelgate = await startSharedReelgate({ video: await makeSmallVideo(), title: 'Small video' })
  site = await startWordPress()
  chromium = await startChromium()
  const options = JSON.stringify({ server: reelgate.url, secret: reelgate.owner.apiKey })
  await site.evaluate(`update_option('reelgate', json_decode(${quote(options)}, true));
    wp_insert_user(['user_login' => 'ann', 'user_pass' => 'secret', 'user_email' => 'ann@example.org', 'display_name' => 'Ann Lee', 'role' => 'subscriber']);`)
  lesson = await site.publish(`[reelgate id="${reelgate.videoId}"]`)
})
afterAll(async () => {
  await chromium?.close()
  await site?.remove()
  await reelgate?.remove()
})

async function signIn(browser: BrowserContext, name: string): Promise<void> {
  const page = await openTab(browser)
  await page.goto(`${site.url}/wp-login.php`)
  await page.fill('#user_login', name)
  await page.fill('#user_pass', 'secret')
  await page.click('#wp-submit')
  await page.waitForURL(/wp-admin/)
}

async function open(browser: BrowserContext, address: string): Promise<Page> {
  const page = await openTab(browser)
  await page.goto(address)
  return page
}

async function playerIn(page: Page) {
  await expect.poll(() => page.frames().length).toBe(2)
  const player = lookAtPlayer(page, page.frames().at(1))
  await player.shows('ready')
  return player
}

test('V23: one stored page plays for a visitor and for a member, whose name is in the watermark; it does so for days, then has a button', async () => {
  const visitor = await chromium.newContext()
  const player = await playerIn(await open(visitor, lesson))
  await player.play()
  await player.playsPast(1)
  await keepPicture('wordpress-visitor', () => player.page.screenshot())
  const member = await chromium.newContext()
  await signIn(member, 'ann')
  const page = await open(member, lesson)
  expect(await page.locator('body').getAttribute('class')).not.toContain('logged-in') // it is the stored one
  const own = await playerIn(page)
  await own.play()
  await own.playsPast(1)
  // The player draws watermarks where no script of a page finds them.
  const watermarks = readRows<{ watermarks: string }>(reelgate, 'select watermarks from playback_session').map(
    (row) => row.watermarks,
  )
  expect(watermarks.filter((text) => text.includes('Ann Lee'))).toHaveLength(1)
  await keepPicture('wordpress-member', () => page.screenshot())

  const old = await site.publish(`[vdo id="${reelgate.videoId}" width="640" height="auto"]`)
  await site.startPhp(6)
  await open(visitor, `${old}&rendered=6`)
  await site.startPhp(9)
  await (await fetch(`${old}&rendered=9`)).text() // to its end: a cache stores what a killed server has sent
  await site.startPhp()
  await (await playerIn(await open(member, `${old}&rendered=6`))).play()
  const stale = await open(visitor, `${old}&rendered=9`)
  await stale.getByText('This page has been open, or stored, for some days.').waitFor()
  await keepPicture('wordpress-stale', () => stale.screenshot())
  await stale.getByRole('button', { name: 'Reload the page' }).click()
  await (await playerIn(stale)).play()
})

test('V24: a lesson that is for members has no tag for others, and the tag of another one does not open it', async () => {
  const hidden = await reelgate.owner.readyVideo(await makeSmallVideo(), 'For members')
  const address = await site.publish(`[members][reelgate id="${hidden}"][/members] [reelgate id="${reelgate.videoId}"]`)
  const page = await open(await chromium.newContext(), address)
  await page.getByText('For members.').waitFor()
  expect(await page.content()).not.toContain(hidden)
  const { tag } = JSON.parse((await page.locator('.reelgate-video').getAttribute('data-reelgate')) ?? '{}')
  const ask = async (fields: object) => {
    const reply = await fetch(`${site.url}/wp-admin/admin-ajax.php`, {
      method: 'POST',
      body: new URLSearchParams({ action: 'reelgate_otp', ...fields }),
    })
    return [reply.status, reply.headers.get('cache-control')?.includes('no-cache')]
  }
  expect(await ask(tag)).toEqual([200, true])
  expect(await ask({ ...tag, video: hidden })).toEqual([403, true])
})

test('an owner connects the site, picks a video in the block editor and publishes it: it plays', async () => {
  const browser = await chromium.newContext()
  await signIn(browser, 'owner')
  const page = await open(browser, `${site.url}/wp-admin/options-general.php?page=reelgate`)
  await page.getByRole('button', { name: 'Test the connection' }).click()
  await page.getByText('✓ Play videos').waitFor()
  await keepPicture('wordpress-settings', () => page.screenshot())
  expect(await page.content()).not.toContain(reelgate.owner.apiKey)
  await page.goto(`${site.url}/wp-admin/post-new.php`)
  await page.waitForFunction(`window.wp?.data?.select('core/editor')?.__unstableIsEditorReady()`) // what is inserted before is lost
  await page.evaluate(`
    wp.data.dispatch('core/edit-post').toggleFeature('welcomeGuide')
    wp.data.dispatch('core/block-editor').insertBlocks(wp.blocks.createBlock('reelgate/video'))
    wp.data.dispatch('core/editor').editPost({ title: 'Picked' })`)
  await page.getByRole('searchbox', { name: 'Search for a video' }).fill('small')
  await page
    .getByRole('button', { name: /Small video/ })
    .first()
    .click()
  await keepPicture('wordpress-block', () => page.screenshot())
  await page.evaluate(
    `wp.data.dispatch('core/editor').editPost({ status: 'publish' }); wp.data.dispatch('core/editor').savePost()`,
  )
  await expect.poll(() => page.evaluate(`wp.data.select('core/editor').didPostSaveRequestSucceed()`)).toBe(true)
  const address = (await page.evaluate(`wp.data.select('core/editor').getPermalink()`)) as string
  const player = await playerIn(await open(await chromium.newContext(), address))
  await player.play()
  await player.playsPast(1)
})

test('a member who has watched a lesson has completed it: a theme function is called, once', async () => {
  const browser = await chromium.newContext()
  await signIn(browser, 'ann')
  const player = await playerIn(await open(browser, lesson))
  await player.play()
  await expect
    .poll(() => site.evaluate("echo get_user_meta(get_user_by('login', 'ann')->ID, 'completed', true);"), { interval: 2000 })
    .toBe(lesson.replace(/^.*=/, ''))
})
