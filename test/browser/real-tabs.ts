import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { makeHome, startGroup } from './engines/processes.ts'

// playwright tells every page that it is in front. Here Chromium's own protocol opens tabs that hide each other, as a viewer's do:
// https://chromedevtools.github.io/devtools-protocol/

export type RealTab = {
  /** Evaluates an expression in the page; resolves to what its promise resolves to. */
  run<T>(expression: string): Promise<T>
  /** Opens another tab before this one. */
  hide(): Promise<void>
}

type Answer = { id: number; result?: Record<string, never>; error?: { message: string } }

/** Starts Chromium with tabs that hide each other. The caller ends it. */
export async function startChromiumWithTabs() {
  const home = await makeHome('tabs')
  const chromium = startGroup(
    '/usr/bin/chromium',
    [
      ...[
        '--headless',
        '--no-sandbox',
        '--disable-gpu',
        '--no-first-run',
        '--remote-debugging-port=0',
        `--user-data-dir=${home.path}`,
      ],
      '--autoplay-policy=no-user-gesture-required',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  async function end() {
    await chromium.end()
    await home.remove()
  }
  const send = await connect(await readAddress(chromium.child.stderr))

  return {
    end,
    async openTab(url: string): Promise<RealTab> {
      const { targetId } = await send<{ targetId: string }>('Target.createTarget', { url })
      const { sessionId } = await send<{ sessionId: string }>('Target.attachToTarget', { targetId, flatten: true })
      return {
        async run<T>(expression: string): Promise<T> {
          const options = { expression, awaitPromise: true, returnByValue: true }
          type Outcome = { result: { value: T }; exceptionDetails?: { text: string } }
          const { result, exceptionDetails } = await send<Outcome>('Runtime.evaluate', options, sessionId)
          if (exceptionDetails) throw new Error(exceptionDetails.text)
          return result.value
        },
        async hide() {
          const other = await send<{ targetId: string }>('Target.createTarget', { url: 'about:blank' })
          await send('Target.activateTarget', other)
        },
      }
    },
  }
}

async function readAddress(output: NodeJS.ReadableStream | null): Promise<string> {
  if (!output) throw new Error('The output of Chromium is not read')
  const lines = createInterface({ input: output })
  return new Promise((resolve, reject) => {
    lines.on('line', (line) => {
      const [, address] = /listening on (ws:\S+)/.exec(line) ?? []
      if (address !== undefined) resolve(address)
    })
    lines.on('close', () => reject(new Error('Chromium has ended')))
  })
}

async function connect(address: string) {
  const socket = new WebSocket(address)
  await once(socket, 'open')
  const pending = new Map<number, (answer: Answer) => void>()
  let lastId = 0
  socket.addEventListener('message', ({ data }) => {
    const answer: Answer = JSON.parse(String(data))
    pending.get(answer.id)?.(answer)
    pending.delete(answer.id)
  })
  return async <Result>(method: string, params: Record<string, unknown>, sessionId?: string): Promise<Result> => {
    const id = ++lastId
    const { promise, resolve } = Promise.withResolvers<Answer>()
    pending.set(id, resolve)
    socket.send(JSON.stringify({ id, method, params, sessionId }))
    const { result, error } = await promise
    if (error) throw new Error(`${method}: ${error.message}`)
    return result as Result
  }
}
