import { once } from 'node:events'
import { globSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { findFreePort } from '../../free-port.ts'
import {
  asJsonFunction,
  CLICK,
  type Engine,
  KEY_VALUES,
  type Point,
  type Tab,
  toJson,
  toPagePoint,
  VIEWPORT,
  type Where,
} from './engine.ts'
import { makeHome, startGroup } from './processes.ts'

// WebKitGTK, driven by its WebDriver: https://www.w3.org/TR/webdriver2/

/** A browser of a few lines around the engine, which Debian packages with the driver. */
const BROWSERS = '/usr/lib/*/webkit{2gtk-4,gtk-6}.*/MiniBrowser'

/** Starts Debian's WebKitGTK on a screen that is not displayed. A driver has one session and a session one profile, so each has its own. */
export async function startWebKit(): Promise<Engine> {
  const [binary] = globSync(BROWSERS)
  if (!binary) throw new Error(`There is no ${BROWSERS}: install the Debian package webkit2gtk-driver`)
  const screen = await startScreen()
  const start = () => startDriver(binary, screen.display)
  const first = start()
  const drivers = [first]
  let isFirstUsed = false
  const close = async () => {
    const started = await Promise.allSettled(drivers)
    await Promise.all(started.map((driver) => driver.status === 'fulfilled' && driver.value.end()))
    await screen.end()
  }
  const { version } = await first.catch(async (error) => {
    await close()
    throw error
  })
  return {
    version,
    async openProfile() {
      const driver = isFirstUsed ? start() : first
      isFirstUsed = true
      drivers.push(driver)
      return driveTab((await driver).send)
    },
    close,
  }
}

async function startScreen() {
  const args = ['-displayfd', '3', '-screen', '0', '1024x768x24', '-nolisten', 'tcp']
  const { child, end } = startGroup('Xvfb', args, { stdio: ['ignore', 'ignore', 'ignore', 'pipe'] })
  const output = child.stdio[3]
  if (!output) throw new Error('The output of Xvfb is not read')
  const [number] = await Promise.race([once(output, 'data'), once(child, 'close').then(() => [])])
  if (number === undefined) throw new Error('Xvfb has ended')
  return { display: `:${String(number).trim()}`, end }
}

type Send = <Result>(method: 'GET' | 'POST' | 'DELETE', path: string, body?: Record<string, unknown>) => Promise<Result>

async function startDriver(binary: string, display: string) {
  const home = await makeHome('webkit')
  const port = await findFreePort()
  const env = { ...process.env, DISPLAY: display, HOME: home.path, XDG_RUNTIME_DIR: home.path, NO_AT_BRIDGE: '1' }
  const { child, end } = startGroup('WebKitWebDriver', [`--port=${port}`], { env, stdio: 'ignore' })
  const close = async () => {
    await end()
    await home.remove()
  }
  try {
    const atDriver = sendTo(`http://127.0.0.1:${port}`)
    while (
      child.exitCode === null &&
      !(await atDriver('GET', '/status').then(
        () => true,
        () => false,
      ))
    )
      await pause(50)
    type Session = { sessionId: string; capabilities: { browserVersion: string } }
    const options = { binary, args: ['--automation', '--autoplay-policy=allow'] }
    const { sessionId, capabilities } = await atDriver<Session>('POST', '/session', {
      capabilities: { alwaysMatch: { 'webkitgtk:browserOptions': options, timeouts: { script: 300_000 } } },
    })
    return { send: sendTo(`http://127.0.0.1:${port}/session/${sessionId}`), version: capabilities.browserVersion, end: close }
  } catch (error) {
    await close()
    throw error
  }
}

function sendTo(base: string): Send {
  return async <Result>(method: string, path: string, body?: Record<string, unknown>) => {
    const response = await fetch(`${base}${path}`, { method, body: body && JSON.stringify(body) })
    const { value }: { value: Result & { error?: string; message?: string } } = JSON.parse(await response.text())
    if (!response.ok) throw new Error(`${path}: ${value.error} ${value.message}`)
    return value
  }
}

/** As a script that WebDriver runs: its last argument is called with the outcome. */
function asAsyncScript(script: (argument: never) => unknown): string {
  return `const [json, settle] = arguments;
    (${asJsonFunction(script)})(json).then((result) => settle({ result }), (error) => settle({ error: String(error) }))`
}

async function driveTab(send: Send): Promise<Tab> {
  const act = (actions: Record<string, unknown>) => send<void>('POST', '/actions', { actions: [actions] })
  const toPage = () => send<void>('POST', '/frame', { id: null })

  async function toFrame() {
    await toPage()
    const frame = await send<Record<string, string>>('POST', '/element', { using: 'css selector', value: 'iframe' })
    await send('POST', '/frame', { id: frame })
  }

  const run: Tab['run'] = async (where, script, argument) => {
    await (where === 'page' ? toPage() : toFrame())
    type Outcome = { result: string; error?: string }
    const body = { script: asAsyncScript(script), args: [toJson(argument)] }
    const { result, error } = await send<Outcome>('POST', '/execute/async', body)
    if (error !== undefined) throw new Error(error)
    return JSON.parse(result)
  }

  async function point(where: Where, at: Point, ...more: unknown[]) {
    const { xPx, yPx } = await toPagePoint(run, where, at)
    await toPage()
    const move = { type: 'pointerMove', duration: 0, x: Math.round(xPx), y: Math.round(yPx) }
    await act({ type: 'pointer', id: 'mouse', parameters: { pointerType: 'mouse' }, actions: [move, ...more] })
  }

  // The window is as large as asked for, its toolbar included.
  await send('POST', '/window/rect', VIEWPORT)
  const toolbarPx = VIEWPORT.height - (await run('page', () => innerHeight, null))
  await send('POST', '/window/rect', { ...VIEWPORT, height: VIEWPORT.height + toolbarPx })

  return {
    async goto(url) {
      await toPage()
      await send('POST', '/url', { url })
    },
    async reload() {
      await toPage()
      await send('POST', '/refresh', {})
    },
    run,
    moveMouse: (where, to) => point(where, to),
    click: (where, at) => point(where, at, ...CLICK),
    doubleClick: (where, at) => point(where, at, ...CLICK, ...CLICK),
    press(key) {
      const value = KEY_VALUES[key]
      return act({ type: 'key', id: 'keyboard', actions: ['keyDown', 'keyUp'].map((type) => ({ type, value })) })
    },
    async screenshot() {
      await toPage()
      return Buffer.from(await send<string>('GET', '/screenshot'), 'base64')
    },
  }
}

declare const innerHeight: number
