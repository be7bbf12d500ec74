// The addresses of uploads that have not finished, by their files, kept in the browser: when the same file is chosen again, also after the
// browser was closed, its upload continues. A browser that keeps nothing only loses that.

/** `token`: what it was begun with, and can be continued with alone; none where the page's own credential is enough. */
type Address = { url: string; token?: string }

/** Where the address of a file's upload is kept. */
export type UnfinishedUpload = {
  read(): Address | undefined
  keep(address: Address): void
  /** It has finished, or is given up. */
  forget(): void
  /** Another page may continue it now. */
  release(): void
}

const PREFIX = 'reelgate-unfinished '
/** Longer than a server keeps an upload that gets no further. */
const KEPT_FOR_MS = 30 * 24 * 3600 * 1000

/** In browsers without locks, which are those of a page without https. */
const heldHere = new Set<string>()

/**
 * @param server such as the endpoint: what belongs to another one is not found
 * @returns undefined while the same file is being sent, by this page or another: it is sent twice then, as two uploads
 */
export async function claimUnfinished(server: string, { name, size, lastModified }: File): Promise<UnfinishedUpload | undefined> {
  const key = PREFIX + JSON.stringify([server, name, size, lastModified])
  const storage = openStorage()
  if (storage) removeOld(storage)
  const release = await lock(key, { waits: storage?.getItem(key) != null })
  if (!release) return undefined
  return {
    read: () => parse(storage?.getItem(key)),
    keep(address) {
      try {
        storage?.setItem(key, JSON.stringify({ ...address, keptAtMs: Date.now() }))
      } catch {
        // full
      }
    },
    forget: () => storage?.removeItem(key),
    release,
  }
}

/** A page that was left holds its locks for a moment longer. */
const MAX_WAIT_MS = 5_000

/** @param waits for another page, which may be ending @returns what ends the lock; undefined: another one has it */
async function lock(key: string, { waits }: { waits: boolean }): Promise<(() => void) | undefined> {
  if (heldHere.has(key)) return undefined
  heldHere.add(key)
  const held = Promise.withResolvers<void>()
  const taken = Promise.withResolvers<boolean>()
  if ('locks' in navigator)
    navigator.locks
      .request(key, waits ? { signal: AbortSignal.timeout(MAX_WAIT_MS) } : { ifAvailable: true }, (lock) => {
        taken.resolve(lock !== null)
        return lock ? held.promise : undefined
      })
      .catch(({ name }: DOMException) => taken.resolve(name !== 'TimeoutError')) // locks are refused to a page in a sandbox
  else taken.resolve(true)
  const release = () => {
    heldHere.delete(key)
    held.resolve()
    window.removeEventListener('pagehide', release)
  }
  window.addEventListener('pagehide', release)
  if (await taken.promise) return release
  return void release()
}

function openStorage(): Storage | undefined {
  try {
    return localStorage
  } catch {
    return undefined // the viewer has switched it off
  }
}

function parse(text: string | null | undefined): (Address & { keptAtMs: number }) | undefined {
  const { url, token, keptAtMs }: Record<string, unknown> = JSON.parse(text ?? '{}')
  if (typeof url !== 'string' || typeof keptAtMs !== 'number') return undefined
  return { url, keptAtMs, ...(typeof token === 'string' && { token }) }
}

function removeOld(storage: Storage): void {
  for (const key of Object.keys(storage).filter((key) => key.startsWith(PREFIX))) {
    const kept = parse(storage.getItem(key))
    if (!kept || Date.now() - kept.keptAtMs > KEPT_FOR_MS) storage.removeItem(key)
  }
}
