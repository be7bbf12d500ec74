import { globSync } from 'node:fs'
import { drawSome } from './sample.ts'
import { type Chance, isLong, newChance } from './seeded-random.ts'

type Family = {
  files: readonly string[]
  /** Which of these files every run makes. */
  always?: readonly string[]
  /** How much of the others: of 4 files with 1/2, two. */
  share: number
}

/** Families of long files: most start browsers, ffmpeg or servers of their own. All together take more than twice as long as a run may. */
export const FAMILIES: Record<string, Family> = {
  'the player': { files: ['test/browser/*.test.ts'], share: 1 / 4 },
  'the console': { files: ['test/browser/console/*.test.ts'], share: 1 / 4 },
  'uploads to decrypted frames': { files: ['test/pipeline/*.test.ts'], share: 1 / 4 },
  encodes: {
    files: ['test/encode/**/*.test.ts'],
    always: ['test/encode/{account-queue,capacity,chunk-fence,chunk-plan,deleted,plan,scheduler,system-calls}.test.ts'],
    share: 1 / 4,
  },
  'posters, captions and MP4s': { files: ['test/assets/*.test.ts'], share: 1 / 3 },
  'uploads and imports': { files: ['test/ingest/*.test.ts'], share: 1 / 3 },
  buckets: {
    files: ['test/storage/*.test.ts', 'test/playback/{direct-bucket,media-origin}.test.ts'],
    always: ['test/storage/{blob-folder,bucket-rules,places,retired,write-whole}.test.ts'],
    share: 1 / 3,
  },
  'programs that take keys': {
    files: ['test/playback/{alerts,key-pacing,replay-matrix,ripper,stream-limit,suspicion}.test.ts'],
    share: 1 / 3,
  },
  starts: { files: ['test/start/*.test.ts'], share: 1 / 3 },
  faults: { files: ['test/faults/*.test.ts'], share: 1 / 3 },
  crashes: { files: ['test/crash/*.test.ts'], always: ['test/crash/checker.test.ts'], share: 1 / 3 },
  webhooks: { files: ['test/webhooks/*.test.ts'], share: 1 / 3 },
  'rate limits': { files: ['test/rate-limits/{bans,requests,restart,several-servers,shared-address}.test.ts'], share: 1 / 3 },
  'workers and several servers': {
    files: ['test/workers/{encoders,hostile,machines,needed-parts,recheck,worker}.test.ts', 'test/servers/*.test.ts'],
    share: 1 / 3,
  },
  'backups, moves and rotations': {
    files: ['test/backup/{backup,bucket,damaged-files}.test.ts', 'test/db/move/*.test.ts', 'test/master-key/rotation*.test.ts'],
    share: 1 / 3,
  },
  'installing, moving in and measuring': {
    files: ['test/{package/package,move-in/move-in,wordpress/plugin,bench/bench}.test.ts'],
    share: 1 / 2,
  },
  'what owners are shown and sent': {
    files: ['test/{alerts/*,catalogue/trash,usage/usage,viewers/api,watermark/watermark-images}.test.ts'],
    share: 1 / 2,
  },
  'races, plans and migrations': {
    files: ['test/db/postgres/{fold,plans,races,write}.test.ts', 'test/db/sqlite/{locked,migrations,plans,write}.test.ts'],
    share: 1 / 2,
  },
}

/** The files that a run of everything leaves out. */
export function filesLeftOut(): string[] {
  return isLong ? [] : drawFilesToLeaveOut(newChance('files of this run'))
}

/** The files of families that one run leaves out, as chance has it. */
export function drawFilesToLeaveOut(chance: Chance): string[] {
  return Object.values(FAMILIES).flatMap((family) => {
    const files = filesDrawnFrom(family)
    const made = new Set(drawSome(files, Math.ceil(files.length * family.share), chance))
    return files.filter((file) => !made.has(file))
  })
}

/** Those of a family's files that are not in every run. */
export function filesDrawnFrom({ files, always = [] }: Family): string[] {
  const inEveryRun = new Set(listFiles(always))
  return listFiles(files).filter((file) => !inEveryRun.has(file))
}

function listFiles(patterns: readonly string[]): string[] {
  return patterns.flatMap((pattern) => globSync(pattern)).toSorted()
}
