// Uploads end with their page. What was under way is kept by name, so that the next visit can say what is missing, and why. A page holds
// a lock of the browser while it uploads: names whose lock is free belong to a page that is gone. It says that it is left; one that
// could not say so was ended by the browser or the machine.

const PREFIX = 'reelgate-uploads-'
const PAGE_KEY = 'reelgate-uploads-page'

export type Interrupted = { titles: string[]; why: 'closed' | 'reloaded' | 'stopped' }

const page = `${PREFIX}${crypto.randomUUID()}`
let titles: readonly string[] = []
let release: (() => void) | undefined

/** Keeps the names of what this page is uploading; none: it has nothing to lose. */
export function keepUnderWay(next: readonly string[]): void {
  titles = next
  if (titles.length === 0) {
    localStorage.removeItem(page)
    window.removeEventListener('pagehide', leave)
    release?.()
    release = undefined
    return
  }
  if (release) {
    write({ isLeft: false })
    return
  }
  const held = Promise.withResolvers<void>()
  release = held.resolve
  sessionStorage.setItem(PAGE_KEY, page)
  window.addEventListener('pagehide', leave)
  void navigator.locks.request(page, () => {
    if (titles.length > 0) write({ isLeft: false }) // names without a lock would count as those of a page that is gone
    return held.promise
  })
}

function leave() {
  write({ isLeft: true })
}

function write({ isLeft }: { isLeft: boolean }) {
  localStorage.setItem(page, JSON.stringify({ titles, isLeft }))
}

/** Takes the names that pages which are gone have left. */
export async function takeInterrupted(): Promise<Interrupted[]> {
  const { held = [] } = await navigator.locks.query()
  const alive = new Set([page, ...held.map(({ name }) => name)])
  const gone = Object.keys(localStorage).filter((key) => key.startsWith(PREFIX) && key !== PAGE_KEY && !alive.has(key))
  return gone.flatMap((key) => {
    const left: { titles?: unknown; isLeft?: unknown } = JSON.parse(localStorage.getItem(key) ?? '{}')
    localStorage.removeItem(key)
    if (!Array.isArray(left.titles)) return []
    const why = left.isLeft !== true ? 'stopped' : sessionStorage.getItem(PAGE_KEY) === key ? 'reloaded' : 'closed'
    return [{ titles: left.titles.filter((title) => typeof title === 'string'), why }]
  })
}
