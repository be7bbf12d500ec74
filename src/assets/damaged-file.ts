import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { requeueStoryboard } from '../catalogue/storyboard-store.ts'
import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import { requeuePosters } from '../encode/add-posters.ts'
import { DamagedFile, type Failure, hostFailure } from '../errors.ts'
import type { Signals } from '../signals/signals.ts'
import { type FileKind, type FileName, findFileDamage, setFileDamaged } from './file-damage-store.ts'
import { requeueMp4 } from './mp4-store.ts'

/** A file of a video that is missing or has other bytes, and what becomes of it. */
export type FileDamage = FileName & { kind: FileKind; isMadeAgain: boolean }

/**
 * Marks a file as damaged, logs it once, and has it made again where that is possible: an MP4, a storyboard and candidates for the
 * poster from the segments, extracted posters from the source.
 * @returns undefined when the file, or its video, was deleted meanwhile
 */
export async function recordDamagedFile(
  { write, signals, log }: DamageDeps,
  { videoId, name }: FileName,
  problem: string,
): Promise<FileDamage | undefined> {
  const found = await write(async (tx) => {
    const file = await findFileDamage(tx, { videoId, name })
    if (!file) return undefined
    const { id, kind, damaged, generation } = file
    await setFileDamaged(tx, id, 1)
    const isMadeAgain = await REQUEUES[kind](tx, { videoId, name, generation })
    return { kind, isNew: damaged === 0, isMadeAgain }
  })
  if (!found) return undefined
  for (const work of ['encode', 'mp4', 'storyboard'] as const) void signals.send('work-queued', work)
  const { kind, isNew, isMadeAgain } = found
  if (isNew) log.error({ videoId, kind, file: name, problem }, 'file: damaged')
  return { videoId, name, kind, isMadeAgain }
}

/** Has a file made again where that is possible. @returns whether it is */
const REQUEUES: Readonly<Record<FileKind, (tx: Db, file: FileName & { generation: number | null }) => Promise<boolean>>> = {
  original: async () => false,
  caption: async () => false,
  async poster(tx, { videoId, generation }) {
    if (generation === null || !(await requeuePosters(tx, { videoId, generation }))) return false
    await requeueStoryboard(tx, { videoId, generation }) // for the best candidate again
    return true
  },
  async mp4(tx, { name }) {
    await requeueMp4(tx, name)
    return true
  },
  storyboard: makeStoryboardAgain,
  'poster-candidate': makeStoryboardAgain,
}

async function makeStoryboardAgain(tx: Db, { videoId, generation }: FileName & { generation: number | null }): Promise<boolean> {
  await requeueStoryboard(tx, { videoId, generation: generation ?? 0 })
  return true
}

type DamageDeps = { write: Write; signals: Pick<Signals, 'send'>; log: Pick<Logger, 'error'> }

/** A file that a request could not read. */
export type UnreadFile = FileName & { kind: FileKind }

export type DamagedFiles = {
  /** Records the damage, and returns the error for the caller. */
  report(file: UnreadFile, cause: unknown): Promise<Failure>
}

const SENTENCES: Readonly<Record<FileKind, string>> = {
  original: 'The uploaded file is missing or damaged on the disk of this server. Restore it from a backup.',
  poster: 'This poster is missing or damaged on the disk of this server. Restore it from a backup, or set another one.',
  'poster-candidate':
    'This picture was missing or damaged on the disk of this server. It is being made again: try again in some minutes.',
  caption: 'These captions are missing or damaged on the disk of this server. Restore them from a backup, or upload them again.',
  mp4: 'This MP4 was missing or damaged on the disk of this server. It is being made again: try again in some minutes.',
  storyboard:
    'This storyboard was missing or damaged on the disk of this server. It is being made again: try again in some minutes.',
}
const EXTRACTED_POSTER =
  'This poster was missing or damaged on the disk of this server. It is being made again: try again in some minutes.'

/** How many files are remembered as recorded. */
const MAX_KNOWN = 1000

/** @param record is called once for each file */
export function createDamagedFiles(record: (file: FileName, problem: string) => Promise<FileDamage | undefined>): DamagedFiles {
  const known = new LRUCache<string, FileDamage>({ max: MAX_KNOWN })
  return {
    async report({ kind, videoId, name }, cause) {
      const problem = hostFailure(cause)
      if (problem) return problem
      const damage = known.get(name) ?? (await record({ videoId, name }, cause instanceof Error ? cause.message : String(cause)))
      if (damage) known.set(name, damage)
      return new DamagedFile(kind === 'poster' && damage?.isMadeAgain ? EXTRACTED_POSTER : SENTENCES[kind])
    },
  }
}

/** What is known of damaged files, for the administrator: which can be made again, and what to do about the others. */
export function describeDamagedFiles(damaged: readonly FileDamage[]): string {
  const sentences = Object.entries(REMEDIES).map(([kind, remedy]) => {
    const lost = damaged.filter((file) => file.kind === kind && !file.isMadeAgain)
    return lost.length === 0 ? '' : remedy(nameSome(lost))
  })
  const remade = damaged.filter(({ isMadeAgain }) => isMadeAgain)
  if (remade.length > 0) sentences.push(`Being made again by the server: ${nameSome(remade)}.`)
  if (remade.length < damaged.length) sentences.push('Afterwards run reelgate doctor --media.')
  return ['Missing or damaged on the disk:', ...sentences.filter(Boolean)].join(' ')
}

const REMEDIES: Readonly<Record<FileKind, (names: string) => string>> = {
  original: (names) => `uploaded files ${names}. Copy them from media/sources in a backup; their videos play without them.`,
  poster: (names) => `posters ${names}. Copy them from media/posters in a backup, or set others and delete these.`,
  caption: (names) => `captions ${names}. Copy them from media/files in a backup, or upload them again and delete these.`,
  'poster-candidate': (names) => `pictures to choose a poster from ${names}. They could not be made again: the log says why.`,
  storyboard: (names) => `storyboards ${names}. They could not be made again: the log says why.`,
  mp4: (names) => `MP4s ${names}. They could not be made again: the video's page says why.`,
}

const MAX_NAMED = 5

function nameSome(files: readonly FileName[]): string {
  const more = files.length - MAX_NAMED
  return (
    files
      .map(({ name }) => name)
      .slice(0, MAX_NAMED)
      .join(', ') + (more > 0 ? ` and ${more} more` : '')
  )
}
