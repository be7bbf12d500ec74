import {
  type Greeting,
  isGreeting,
  type PageMessage,
  type PlayerMessage,
  type PlayerMethod,
  type SettableProperty,
  type VideoState,
} from './messages.ts'

type Call = { resolve(value: unknown): void; reject(error: Error): void }

export type Connection = {
  /** Resolves once the player has answered for the first time. */
  readonly connected: Promise<void>
  call(method: PlayerMethod, argument?: unknown): Promise<unknown>
  set(property: SettableProperty, value: number | boolean): void
}

/** @param listener called for each message of the player; `event` is absent for the first one of a connection */
type Listener = (state: VideoState, loaded: readonly string[], event?: string) => void

/** Connects a page to the player in its frame, whether that has loaded or not, and again when the frame loads another page. */
export function connect(frame: HTMLIFrameElement, listener: Listener): Connection {
  const waiting: PageMessage[] = []
  const calls = new Map<number, Call>()
  let calledSoFar = 0
  let pageLoad: string | undefined
  let port: MessagePort | undefined
  let nowConnected = () => {}
  const connected = new Promise<void>((resolve) => {
    nowConnected = resolve
  })

  addEventListener('message', ({ data, source, origin }) => {
    if (source !== frame.contentWindow || source === null || origin !== readOrigin(frame)) return
    if (isGreeting(data) && data.reelgate === 'ready' && data.pageLoad !== pageLoad) openPort(data.pageLoad, origin)
  })
  // A frame that has not loaded yet receives nothing, so its player sends the first message.
  greet({ reelgate: 'hello' }, '*')
  return {
    connected,
    call(method, argument) {
      const call = ++calledSoFar
      return new Promise((resolve, reject) => {
        calls.set(call, { resolve, reject })
        send({ call, method, argument })
      })
    },
    set: (property, value) => send({ set: property, value }),
  }

  function greet(greeting: Greeting, targetOrigin: string, ...ports: MessagePort[]) {
    frame.contentWindow?.postMessage(greeting, targetOrigin, ports)
  }

  function openPort(newPageLoad: string, origin: string) {
    const isFirst = pageLoad === undefined
    pageLoad = newPageLoad
    port?.close()
    if (!isFirst) rejectCalls()
    const { port1, port2 } = new MessageChannel()
    port = port1
    port.onmessage = ({ data }: MessageEvent<PlayerMessage>) => receive(data)
    greet({ reelgate: 'connect' }, origin, port2)
    for (const message of waiting.splice(0)) port.postMessage(message)
  }

  function send(message: PageMessage) {
    if (port) port.postMessage(message)
    else waiting.push(message)
  }

  function receive(message: PlayerMessage) {
    if ('state' in message) {
      nowConnected()
      listener(message.state, message.loaded, message.event)
      return
    }
    const call = calls.get(message.answer)
    calls.delete(message.answer)
    if (message.error) call?.reject(new DOMException(message.error.message, message.error.name))
    else call?.resolve(message.value)
  }

  function rejectCalls() {
    for (const { reject } of calls.values()) reject(new DOMException('The frame has loaded another page.', 'AbortError'))
    calls.clear()
  }
}

function readOrigin({ src }: HTMLIFrameElement): string | undefined {
  return URL.canParse(src) ? new URL(src).origin : undefined
}
