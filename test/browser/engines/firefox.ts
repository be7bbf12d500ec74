import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { asJsonFunction, CLICK, type Engine, KEY_VALUES, type Point, type Tab, toJson, VIEWPORT, type Where } from './engine.ts'
import { makeHome, type ProcessGroup, startGroup } from './processes.ts'

// Firefox, driven by the protocol that it serves itself: https://w3c.github.io/webdriver-bidi/

const PREFERENCES = {
  'media.autoplay.default': 0, // audio plays without a click
  // A mouse (2: fine, 4: hovers). Machines without one have none, and nothing shows under a pointer: the preview of the seek bar, tooltips.
  'ui.primaryPointerCapabilities': 6,
  'ui.allPointerCapabilities': 6,
  // It connects to our server alone.
  'app.normandy.enabled': false,
  'services.settings.server': 'data:,',
  'network.captive-portal-service.enabled': false,
  'network.connectivity-service.enabled': false,
}

/** Starts Debian's Firefox without a window. Each profile is a container of it: cookies, storage and keys of its own. */
export async function startFirefox(): Promise<Engine> {
  const home = await makeHome('firefox')
  const lines = Object.entries(PREFERENCES).map(([name, value]) => `user_pref('${name}', ${JSON.stringify(value)});\n`)
  await writeFile(join(home.path, 'user.js'), lines.join(''))
  const firefox = startGroup(
    'firefox-esr',
    ['--headless', '--no-remote', '--profile', home.path, '--remote-debugging-port', '0'],
    { env: { ...process.env, HOME: home.path }, stdio: ['ignore', 'ignore', 'pipe'] },
  )
  const close = async () => {
    await firefox.end()
    await home.remove()
  }
  try {
    const send = await connect(await readAddress(firefox))
    const { capabilities } = await send<{ capabilities: { browserVersion: string } }>('session.new', { capabilities: {} })
    return { version: capabilities.browserVersion, openProfile: () => openProfile(send), close }
  } catch (error) {
    await close()
    throw error
  }
}

/** @returns the address at which Firefox listens, which it prints */
async function readAddress({ child }: ProcessGroup): Promise<string> {
  if (!child.stderr) throw new Error('The output of Firefox is not read')
  const lines: string[] = []
  const output = createInterface({ input: child.stderr })
  return new Promise((resolve, reject) => {
    // It reads to the end: a full pipe would stop the browser.
    output.on('line', (line) => {
      lines.push(line)
      const [, address] = /WebDriver BiDi listening on (ws:\S+)/.exec(line) ?? []
      if (address !== undefined) resolve(address)
    })
    child.on('error', reject)
    output.on('close', () => reject(new Error(`Firefox has ended:\n${lines.join('\n')}`)))
  })
}

type Send = <Result>(method: string, params?: Record<string, unknown>) => Promise<Result>
type Response<Result> = { id?: number; type: string; result: Result; error?: string; message?: string }

const ENDED = JSON.stringify({ type: 'error', error: 'Firefox has ended' })

async function connect(address: string): Promise<Send> {
  const socket = new WebSocket(`${address}/session`)
  await once(socket, 'open')
  const pending = new Map<number, (json: string) => void>()
  let lastId = 0
  socket.addEventListener('message', ({ data }) => {
    const { id }: Response<unknown> = JSON.parse(data)
    if (id !== undefined) pending.get(id)?.(data)
  })
  socket.addEventListener('close', () => {
    for (const settle of pending.values()) settle(ENDED)
  })
  return async <Result>(method: string, params: Record<string, unknown> = {}) => {
    const id = ++lastId
    const json = await new Promise<string>((settle) => {
      pending.set(id, settle)
      if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ id, method, params }))
      else settle(ENDED)
    })
    pending.delete(id)
    const response: Response<Result> = JSON.parse(json)
    if (response.type === 'error') throw new Error(`${method}: ${response.error} ${response.message ?? ''}`)
    return response.result
  }
}

type Context = { context: string; children: Context[] | null }
type Evaluated = { type: 'success'; result: { value: string } } | { type: 'exception'; exceptionDetails: { text: string } }

async function openProfile(send: Send): Promise<Tab> {
  const { userContext } = await send<{ userContext: string }>('browser.createUserContext')
  const { context } = await send<{ context: string }>('browsingContext.create', { type: 'tab', userContext })
  await send('browsingContext.setViewport', { context, viewport: VIEWPORT })

  async function findFrame(): Promise<string> {
    const { contexts } = await send<{ contexts: Context[] }>('browsingContext.getTree', { root: context })
    const frame = contexts[0]?.children?.[0]
    if (!frame) throw new Error('The page has no frame')
    return frame.context
  }

  const contextOf = (where: Where) => (where === 'page' ? context : findFrame())
  const act = async (where: Where, actions: Record<string, unknown>) =>
    send<void>('input.performActions', { context: await contextOf(where), actions: [actions] })
  const point = (where: Where, { xPx, yPx }: Point, ...more: unknown[]) => {
    const move = { type: 'pointerMove', x: Math.round(xPx), y: Math.round(yPx) }
    return act(where, { type: 'pointer', id: 'mouse', actions: [move, ...more] })
  }

  return {
    async goto(url) {
      await send('browsingContext.activate', { context }) // behind the tab of another profile, Enter would press no button
      await send('browsingContext.navigate', { context, url, wait: 'complete' })
    },
    reload: () => send('browsingContext.reload', { context, wait: 'complete' }),
    async run(where, script, argument) {
      const evaluated = await send<Evaluated>('script.callFunction', {
        functionDeclaration: asJsonFunction(script),
        arguments: [{ type: 'string', value: toJson(argument) }],
        awaitPromise: true,
        target: { context: await contextOf(where) },
      })
      if (evaluated.type === 'exception') throw new Error(evaluated.exceptionDetails.text)
      return JSON.parse(evaluated.result.value)
    },
    moveMouse: (where, to) => point(where, to),
    click: (where, at) => point(where, at, ...CLICK),
    doubleClick: (where, at) => point(where, at, ...CLICK, ...CLICK),
    press(key) {
      const value = KEY_VALUES[key]
      return act('page', { type: 'key', id: 'keyboard', actions: ['keyDown', 'keyUp'].map((type) => ({ type, value })) })
    },
    async screenshot() {
      const { data } = await send<{ data: string }>('browsingContext.captureScreenshot', { context })
      return Buffer.from(data, 'base64')
    },
  }
}
