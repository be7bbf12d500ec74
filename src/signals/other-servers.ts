import { newId } from '../crypto/secret.ts'
import type { Channel } from '../db/database.ts'

/** So often at most a statement is sent. */
const EVERY_MS = 100
/** PostgreSQL takes less than 8000 bytes. */
const MAX_BYTES = 7_900

type Listener = {
  /** Runs the listeners of this server. */
  received(name: string, data: unknown): void
  /** Signals may have been missed. */
  missed(): void
}

/** Sends signals to the other servers, and gets theirs. What is lost is made good by the rows, so nothing is repeated. */
export function joinChannel(channel: Channel, listener: Listener) {
  const own = newId()
  let waiting = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  let lastSentMs = Number.NEGATIVE_INFINITY
  let sending: Promise<void> | undefined

  function received(payload: string): void {
    const [from, name, data] = JSON.parse(payload)
    if (from !== own) listener.received(name, data ?? undefined)
  }

  function send(name: string, data: unknown): void {
    const payload = JSON.stringify([own, name, data])
    for (const each of Buffer.byteLength(payload) < MAX_BYTES ? [payload] : split(name, data)) waiting.add(each)
    timer ??= setTimeout(flush, Math.max(0, lastSentMs + EVERY_MS - performance.now())).unref()
  }

  /** Lists of ids in parts; what has none is too long for a signal, and left to the rows. */
  function split(name: string, data: unknown): string[] {
    if (typeof data !== 'object' || !data) return []
    return Object.entries(data).flatMap(([key, ids]) => {
      if (!Array.isArray(ids)) return []
      const parts = Array.from({ length: Math.ceil(ids.length / IDS_IN_A_PART) }, (_, part) =>
        ids.slice(part * IDS_IN_A_PART, (part + 1) * IDS_IN_A_PART),
      )
      return parts.map((part) => JSON.stringify([own, name, { ...data, [key]: part }]))
    })
  }

  function flush(): void {
    const payloads = [...waiting]
    waiting = new Set()
    timer = undefined
    lastSentMs = performance.now()
    sending = channel.notify(payloads).catch(() => undefined)
  }

  void channel.listen({ received, connected: listener.missed }).catch(() => undefined) // the next statement connects, and listens
  return {
    send,
    async stop() {
      if (timer) {
        clearTimeout(timer)
        flush()
      }
      await sending
    },
  }
}

const IDS_IN_A_PART = 100
