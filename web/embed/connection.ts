import {
  type ApiEvent,
  type Greeting,
  isGreeting,
  isPosition,
  type PageMessage,
  type PlayerMessage,
  type PlayerMethod,
  type Position,
  type SettableProperty,
  type VideoState,
} from './messages.ts'

type Call = { resolve(value: unknown): void; reject(error: Error): void }

export type Connection = {
  /** Resolves once the player has answered for the first time. */
  readonly connected: Promise<void>
  call(method: PlayerMethod, argument?: unknown): Promise<unknown>
  set(property: SettableProperty, value: number | boolean): void
  /** Opens another address in the frame. What is called from now on goes to that page; what is still open is rejected. */
  load(address: string): void
  /** Reports to the player whether its frame fills the page's viewport. */
  reportFullscreen(isFullscreen: boolean): void
  /** Ends it: the frame was removed. */
  close(): void
}

type Listener = {
  /** For each event of the video; `event` is absent for the first message of a connection. */
  video(state: VideoState, loaded: readonly string[], event?: string): void
  /** After a call. */
  state(state: VideoState): void
  api(event: ApiEvent): void
  /** The viewer asks for a new OTP. @returns whether the page listens */
  asksForOtp(): boolean
  /** The frame has another page. */
  opened(): void
  /** The player asks to fill the page's viewport, or no longer. */
  fullscreen(isWanted: boolean): void
}

/** How long a page has for a new OTP before it is reloaded. */
const OTP_WITHIN_MS = 3000
const LEFT = 'reelgate-left'

const leftBeforeReload = takeStoredPosition()

/** Connects a page to the player in its frame, whether that has loaded or not, and again when the frame loads another page. */
export function connect(frame: HTMLIFrameElement, listener: Listener): Connection {
  const waiting: PageMessage[] = []
  const calls = new Map<number, Call>()
  let calledSoFar = 0
  let pageLoad: string | undefined
  let port: MessagePort | undefined
  let nextAddress: string | undefined
  /** For the next page in the frame. */
  let left = leftBeforeReload
  const life = new AbortController()
  let nowConnected = () => {}
  const connected = new Promise<void>((resolve) => {
    nowConnected = resolve
  })

  addEventListener('message', greeted, { signal: life.signal })
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
    load(address) {
      rejectCalls()
      waiting.length = 0
      port?.close()
      port = undefined
      // The first page, when it has loaded, would be taken for the next one.
      if (pageLoad === undefined) nextAddress = address
      else frame.contentWindow?.location.replace(address)
    },
    reportFullscreen: (isFullscreen) => greet({ reelgate: 'fullscreen', isFullscreen }, readOrigin(frame) ?? '*'),
    close() {
      life.abort()
      port?.close()
      port = undefined
      rejectCalls()
    },
  }

  function greeted({ data, source, origin }: MessageEvent) {
    if (source !== frame.contentWindow || source === null || origin !== readOrigin(frame)) return
    if (!isGreeting(data)) return
    if (data.reelgate === 'ready' && data.pageLoad !== pageLoad) openPort(data.pageLoad, origin)
    if (data.reelgate === 'fullscreen') listener.fullscreen(data.isFullscreen)
  }

  function greet(greeting: Greeting, targetOrigin: string, ...ports: MessagePort[]) {
    frame.contentWindow?.postMessage(greeting, targetOrigin, ports)
  }

  function openPort(newPageLoad: string, origin: string) {
    pageLoad = newPageLoad
    if (nextAddress !== undefined) {
      frame.contentWindow?.location.replace(nextAddress)
      nextAddress = undefined
      return
    }
    if (port) rejectCalls()
    port?.close()
    const { port1, port2 } = new MessageChannel()
    port = port1
    const opened = port
    opened.onmessage = ({ data }: MessageEvent<PlayerMessage>) => port === opened && receive(data, () => port === opened)
    greet({ reelgate: 'connect', left }, origin, port2)
    left = undefined
    for (const message of waiting.splice(0)) opened.postMessage(message)
    listener.opened()
  }

  function send(message: PageMessage) {
    if (port) port.postMessage(message)
    else waiting.push(message)
  }

  function receive(message: PlayerMessage, isCurrent: () => boolean) {
    if ('state' in message) {
      nowConnected()
      listener.video(message.state, message.loaded, message.event)
      return
    }
    if ('apiEvent' in message) return listener.api(message.apiEvent)
    if ('left' in message) {
      left = message.left
      return
    }
    if ('asksForOtp' in message) {
      setTimeout(() => isCurrent() && reloadPage(left), listener.asksForOtp() ? OTP_WITHIN_MS : 0)
      return
    }
    if (message.videoState) listener.state(message.videoState)
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

/** As the viewer would by hand; the place survives it in the storage of this page's own site. */
function reloadPage(left: Position | undefined) {
  try {
    if (left) sessionStorage.setItem(LEFT, JSON.stringify(left))
  } catch {
    // denied: the player knows the place if its own storage or the server does
  }
  location.reload()
}

function takeStoredPosition(): Position | undefined {
  try {
    const position: unknown = JSON.parse(sessionStorage.getItem(LEFT) ?? '{}')
    sessionStorage.removeItem(LEFT)
    return isPosition(position) ? position : undefined
  } catch {
    return undefined
  }
}

function readOrigin({ src }: HTMLIFrameElement): string | undefined {
  return URL.canParse(src) ? new URL(src).origin : undefined
}
