import { globSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { filesLeftOut } from './test/file-sample.ts'
import { LongestFirst } from './test/longest-first.ts'
import { newChance } from './test/seeded-random.ts'
import { SummaryReporter } from './test/summary-reporter.ts'

const isLong = process.env.REELGATE_LONG === '1'

/** Only to end what hangs: a long form takes minutes, and many times as long on a busy machine. How fast something is, the benches measure. */
const HANGS_AFTER_MS = isLong ? 3_600_000 : 300_000

/** The file, log and locks of SQLite. */
const SQLITE_ONLY = 'test/db/sqlite/**'

/** What is promised of every database, and suites that are long: they are run on PostgreSQL in long runs alone. */
const ON_POSTGRES_TOO = [
  'test/db/contract/*.test.ts',
  ...(isLong
    ? [
        'test/conformance/*.test.ts',
        // What protects playback, as far as rows decide it.
        'test/playback/{key-pacing,races,replay-matrix,ripper,stream-limit}.test.ts',
      ]
    : []),
]

/** Suites about files of videos, wherever those are: long runs make them once more with files in a bucket. */
const SUITES_ON_BUCKET = {
  include: [
    'test/{pipeline,assets,ingest,conformance,catalogue}/*.test.ts',
    'test/faults/{cut-off,held-database,injected,removal}.test.ts',
  ],
  // What they do to a disk: named pipes in place of files, and times of files. Servers in a network of their own, in which no bucket is.
  exclude: [
    'test/assets/{races,mp4}.test.ts',
    'test/ingest/{import,import-faults,import-hostile,operations}.test.ts',
    'test/pipeline/durability.test.ts',
  ],
}

/** Short ones, of which a short run makes one. */
const SHORT_ON_BUCKET = [
  'test/assets/{downloads,files}.test.ts',
  'test/ingest/{expired-uploads,resumable-upload,upload-form,upload-memory}.test.ts',
  'test/pipeline/{repair,retry,storyboard}.test.ts',
].flatMap((pattern) => globSync(pattern))

// A server in a test's process starts threads from src/: with this cache Node strips the types of their files once, not at each start.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, '.cache/compile')

const isBucket = process.env.REELGATE_TEST_STORAGE === 'bucket'
const isPostgres = process.env.REELGATE_TEST_DATABASE === 'postgres'
/**
 * Debian's WordPress with its database, a standby of PostgreSQL, a build of another tree, and servers that are lost, take minutes; PulseAudio
 * is installed for long runs.
 */
const LONG_ONLY = isLong
  ? []
  : [
      'test/wordpress/wordpress.test.ts',
      'test/browser/engines/sound-device.test.ts',
      'test/faults/standby.test.ts',
      'test/start/two-versions.test.ts',
      'test/servers/many-viewers.test.ts',
      'test/crash/several-servers.test.ts',
      'test/crash/workers.test.ts',
    ]
/** A run of everything, and not of what was selected by a file's or a test's name. */
const isOfEverything = process.argv.slice(2).every((argument) => argument === 'run' || /^--(?!testNamePattern)/.test(argument))
const onSqlite = {
  name: 'sqlite',
  include: ['test/**/*.test.ts'],
  exclude: [...LONG_ONLY, ...(isOfEverything ? filesLeftOut() : [])],
}
const onPostgres = { name: 'postgres', env: { REELGATE_TEST_DATABASE: 'postgres' } }
const suitesOnBucket = isLong
  ? SUITES_ON_BUCKET
  : { include: SHORT_ON_BUCKET.slice(Math.floor(newChance('suite on a bucket').between(0, SHORT_ON_BUCKET.length))).slice(0, 1) }
const onBucket = { name: 'bucket', env: { REELGATE_TEST_STORAGE: 'bucket' }, ...suitesOnBucket }

export default defineConfig({
  test: {
    projects: (isPostgres
      ? [{ ...onPostgres, include: ['test/**/*.test.ts'], exclude: [SQLITE_ONLY] }]
      : [onSqlite, { ...onPostgres, include: ON_POSTGRES_TOO }, ...(isBucket ? [] : [onBucket])]
    ).map((test) => ({ extends: true, test })),
    globalSetup: ['test/shared-setup.ts'],
    reporters: ['default', new SummaryReporter()],
    // Processes, not threads: tests start ffmpeg, servers and browsers, and better-sqlite3 is native. A worker runs many files and
    // loads the server's modules once, so a file leaves nothing behind that the next one must not find.
    pool: 'forks',
    isolate: false,
    // More than the 2 cores on which the suite must be quick: tests wait for disks, timers and other processes most of their time.
    maxWorkers: 5,
    // Room for short-lived objects, twice V8's default: some 4 % less processor time than without it, in each of three pairs.
    execArgv: ['--min-semi-space-size=32', '--max-semi-space-size=32'],
    sequence: { sequencer: LongestFirst },
    testTimeout: HANGS_AFTER_MS,
    hookTimeout: HANGS_AFTER_MS,
    expect: { poll: { timeout: HANGS_AFTER_MS / 2.5, interval: 100 } },
  },
})
