import type { Turns } from './turns.ts'

/** What this needs to know of the other servers of an installation. */
export type OtherServers = {
  /** Whether another one may have used the database since this one started; never again false. */
  isShared(): boolean
  /** `listener` is awaited before another server answers its first request. */
  onShared(listener: () => Promise<void>): void
}

/** How requests of sessions are answered: from memory as long as no other server answers any, else from rows. */
export type Sharing = {
  run<Result>(alone: () => Promise<Result>, shared: (turns: Turns) => Promise<Result>): Promise<Result>
  isShared(): boolean
}

/** Of a server that is the only one on its database for ever. */
export const ALONE: Sharing = { run: (alone) => alone(), isShared: () => false }

/**
 * @param saveAndForget makes the rows what is in memory. It runs once, when requests that were answered from memory have ended and no other
 *   server answers yet; later ones wait for it.
 */
export async function openSharing(servers: OtherServers, turns: Turns, saveAndForget: () => Promise<void>): Promise<Sharing> {
  let sharing: Promise<void> | undefined
  const inMemory = new Set<Promise<unknown>>()

  async function share(): Promise<void> {
    await Promise.allSettled(inMemory)
    await saveAndForget()
  }

  function shareOnce(): Promise<void> {
    sharing ??= share().catch((error) => {
      sharing = undefined // this server continues from memory, and the other one does not begin
      throw error
    })
    return sharing
  }

  servers.onShared(shareOnce)
  if (servers.isShared()) await shareOnce()
  return {
    async run(alone, shared) {
      if (sharing) {
        await sharing
        return shared(turns)
      }
      const request = alone()
      inMemory.add(request)
      return request.finally(() => inMemory.delete(request))
    },
    isShared: () => sharing !== undefined,
  }
}
