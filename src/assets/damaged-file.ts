import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { Write } from '../db/write.ts'
import { DamagedFile, type Failure, hostFailure } from '../errors.ts'
import { requeueMp4 } from './mp4-store.ts'

/** A file of a video that could not be read. `name`: below its folder. */
export type UnreadFile = { kind: 'original' | 'poster' | 'caption' | 'mp4'; videoId: string; name: string }

export type DamagedFiles = {
  /** Logs the damage once, has an MP4 made again, and returns the error for the caller. */
  report(file: UnreadFile, cause: unknown): Promise<Failure>
}

const SENTENCES: Readonly<Record<UnreadFile['kind'], string>> = {
  original: 'The uploaded file is missing or damaged on the disk of this server. Restore it from a backup.',
  poster: 'This poster is missing or damaged on the disk of this server. Restore it from a backup, or set another one.',
  caption: 'These captions are missing or damaged on the disk of this server. Restore them from a backup, or upload them again.',
  mp4: 'This MP4 was missing or damaged on the disk of this server. It is being made again: try again in some minutes.',
}

/** How many files are remembered as logged. */
const MAX_LOGGED = 1000

export function createDamagedFiles(deps: { write: Write; wakeMp4Scheduler(): void; log: Pick<Logger, 'error'> }): DamagedFiles {
  const logged = new LRUCache<string, true>({ max: MAX_LOGGED })
  return {
    async report({ kind, videoId, name }, cause) {
      const known = hostFailure(cause)
      if (known) return known
      if (!logged.has(name)) {
        const problem = cause instanceof Error ? cause.message : String(cause)
        deps.log.error({ videoId, kind, file: name, problem }, 'file: damaged')
        logged.set(name, true)
      }
      if (kind === 'mp4') {
        await deps.write((tx) => requeueMp4(tx, name))
        deps.wakeMp4Scheduler()
      }
      return new DamagedFile(SENTENCES[kind])
    },
  }
}
