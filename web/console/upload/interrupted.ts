// Uploads end with their tab. What was not finished is kept by name, so that the next visit can say what is missing. A tab holds a lock
// of the browser while it uploads: names whose lock is free belong to a tab that is gone.

const PREFIX = 'reelgate-uploads-'
const tab = `${PREFIX}${crypto.randomUUID()}`
let release: (() => void) | undefined

/** Keeps the names of what this tab has not uploaded yet; none: it has nothing to lose. */
export function keepUnfinished(titles: readonly string[]): void {
  if (titles.length === 0) {
    localStorage.removeItem(tab)
    release?.()
    release = undefined
    return
  }
  localStorage.setItem(tab, JSON.stringify(titles))
  if (release) return
  const held = Promise.withResolvers<void>()
  release = held.resolve
  void navigator.locks?.request(tab, () => held.promise)
}

/** Takes the names that closed tabs have left. */
export async function takeInterrupted(): Promise<string[]> {
  const locks = (await navigator.locks?.query())?.held ?? []
  const held = new Set([tab, ...locks.map(({ name }) => name)])
  const left = Object.keys(localStorage).filter((key) => key.startsWith(PREFIX) && !held.has(key))
  return left.flatMap((key) => {
    const titles: unknown = JSON.parse(localStorage.getItem(key) ?? '[]')
    localStorage.removeItem(key)
    return Array.isArray(titles) ? titles.filter((title) => typeof title === 'string') : []
  })
}
