import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type LaunchOptions } from 'playwright-core'

const SETTINGS = {
  args: [
    ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
    ...['--disable-background-networking', '--disable-component-update', '--disable-sync'], // it requests nothing but our server
  ],
} as const satisfies LaunchOptions

/** The same engine without the browser's own windows, which are never seen: a sixth less processor time. */
export const HEADLESS_SHELL = '/usr/bin/chromium-headless-shell'

/** Of a browser whose size a test does not care about: a software renderer takes twice as long for 1280 × 720. */
const VIEWPORT = { width: 854, height: 480 }

/** What hangs ends after this, not after playwright's half minute, which a busy machine needs now and then. */
const TIMEOUT_MS = 120_000

/** This worker's browsers by their arguments: a start costs as much as a short test, and contexts share nothing. */
const shared = new Map<string, Promise<Browser>>()

/**
 * Debian's Chromium for the tests of one file: each of its contexts is a browser of its own to a server. `close` closes the contexts; the
 * browser remains for the worker's next file, and ends with the worker.
 */
export async function startChromium(...args: string[]): Promise<Browser> {
  const key = args.join(' ')
  const starting = shared.get(key) ?? startShared(key, args)
  shared.set(key, starting)
  return starting
}

async function startShared(key: string, args: readonly string[]): Promise<Browser> {
  const browser = await startChromiumAt(HEADLESS_SHELL, ...args)
  browser.on('disconnected', () => shared.delete(key)) // it has crashed
  return Object.assign(browser, {
    async close() {
      await Promise.all(browser.contexts().map((context) => context.close()))
    },
  })
}

/**
 * The same with storage for frames of other sites, kept apart for each site around them, as browsers have it. playwright takes it away.
 * @see playback facts, section 6, "Test trap"
 */
export const startChromiumWithFrameStorage = (...args: string[]): Promise<Browser> => startChromium(FRAME_STORAGE, ...args)

/** Of two lists of disabled features Chromium takes the last, and playwright's has more. */
const FRAME_STORAGE = '--disable-features=MediaRouter,OptimizationHints'

/** A Chromium of the caller's own, started by this program. */
export async function startChromiumAt(executablePath: string, ...args: string[]): Promise<Browser> {
  const browser = await chromium.launch({ ...SETTINGS, executablePath, args: [...SETTINGS.args, ...args] })
  const newContext = browser.newContext.bind(browser)
  return Object.assign(browser, {
    async newContext(options?: BrowserContextOptions) {
      const context = await newContext({ viewport: VIEWPORT, ...options })
      context.setDefaultTimeout(TIMEOUT_MS)
      return context
    },
  })
}

/** Starts one browser as a person has it: with its windows, a profile, a page cache for "back", and storage for frames of other sites. */
export async function startPersonsChromium(...args: string[]): Promise<PersonsChromium> {
  return startWithProfile(await makeProfile(), args)
}

/** As `startPersonsChromium`, of a person who lets no site store data. */
export const startChromiumWithoutStorage = (options?: BrowserContextOptions) =>
  startWithSettings({ default_content_setting_values: { cookies: 2 } }, options)

/** The same, of one who lets the site of the page alone store cookies. */
export const startChromiumWithoutThirdPartyCookies = (options?: BrowserContextOptions) =>
  startWithSettings({ cookie_controls_mode: 1 }, options)

/** @param settings as Chromium keeps them in a profile */
async function startWithSettings(settings: object, options?: BrowserContextOptions): Promise<PersonsChromium> {
  const profile = await makeProfile()
  await mkdir(join(profile, 'Default'))
  await writeFile(join(profile, 'Default/Preferences'), JSON.stringify({ profile: settings }))
  return startWithProfile(profile, [], options)
}

export type PersonsChromium = { browser: BrowserContext; remove(): Promise<void> }

const makeProfile = () => mkdtemp(join(tmpdir(), 'reelgate-chromium-'))

async function startWithProfile(
  profile: string,
  args: readonly string[],
  options?: BrowserContextOptions,
): Promise<PersonsChromium> {
  const browser = await chromium.launchPersistentContext(profile, {
    ...SETTINGS,
    ...options,
    executablePath: '/usr/bin/chromium',
    viewport: VIEWPORT,
    args: [...SETTINGS.args, FRAME_STORAGE, ...args],
    ignoreDefaultArgs: ['--disable-back-forward-cache'],
  })
  browser.setDefaultTimeout(TIMEOUT_MS)
  return {
    browser,
    async remove() {
      await browser.close()
      await rm(profile, { recursive: true, force: true })
    },
  }
}
