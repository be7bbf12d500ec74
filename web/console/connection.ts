import { installationUrl } from './urls.ts'

// Whether the server answers. Calls report here what they met; queries pause, uploads wait and the notice is shown by what is known here.

type Connection = {
  isAway: boolean
  /** Undefined: it is being asked now, or it is here. */
  nextTryAtMs: number | undefined
}

const HERE: Connection = { isAway: false, nextTryAtMs: undefined }
const MAX_PAUSE_MS = 30_000
const TIMEOUT_MS = 10_000
/** A server that takes longer counts as away until it answers. */
const SLOW_MS = 1_000
/** A server that is lost again sooner is asked as rarely as before. */
const STEADY_AFTER_MS = 30_000

const listeners = new Set<() => void>()
let state = HERE
let tries = 0
let foundAtMs = Number.NEGATIVE_INFINITY
let nextTry: ReturnType<typeof setTimeout> | undefined
let checking: Promise<boolean> | undefined

function set(next: Connection) {
  state = next
  for (const listener of listeners) listener()
}

export const connection = {
  subscribe(onChange: () => void): () => void {
    listeners.add(onChange)
    return () => listeners.delete(onChange)
  },

  get: () => state,

  /** A call had no answer, or that of a proxy which found no server: where the server does not answer either, it is asked until it does. */
  lost() {
    if (state.isAway || checking) return
    if (Date.now() - foundAtMs > STEADY_AFTER_MS) tries = 0
    const slow = setTimeout(() => set({ isAway: true, nextTryAtMs: undefined }), SLOW_MS)
    void connection.check().finally(() => clearTimeout(slow))
  },

  /** A call was answered by the server. */
  found() {
    if (!state.isAway) return
    clearTimeout(nextTry)
    foundAtMs = Date.now()
    set(HERE)
  },

  /** Asks the server now. Resolves with whether it answers. */
  check(): Promise<boolean> {
    checking ??= answers().then((isHere) => {
      checking = undefined
      if (isHere) connection.found()
      else tryLater()
      return isHere
    })
    if (state.isAway) set({ isAway: true, nextTryAtMs: undefined })
    return checking
  },

  /** Resolves when the server answers. */
  async whenHere(): Promise<void> {
    if (await connection.check()) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const leave = connection.subscribe(() => state.isAway || resolve())
    await promise
    leave()
  },
}

function tryLater() {
  clearTimeout(nextTry)
  const pauseMs = Math.min(MAX_PAUSE_MS, 1_000 * 2 ** tries)
  tries += 1
  nextTry = setTimeout(connection.check, pauseMs)
  set({ isAway: true, nextTryAtMs: Date.now() + pauseMs })
}

async function answers(): Promise<boolean> {
  try {
    const response = await fetch(installationUrl('healthz'), { cache: 'no-store', signal: AbortSignal.timeout(TIMEOUT_MS) })
    return response.ok
  } catch {
    return false
  }
}
