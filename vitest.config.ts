import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { LongestFirst } from './test/longest-first.ts'
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

// A server in a test's process starts threads from src/: with this cache Node strips the types of their files once, not at each start.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, '.cache/compile')

const isPostgres = process.env.REELGATE_TEST_DATABASE === 'postgres'
const onSqlite = { name: 'sqlite', include: ['test/**/*.test.ts'] }
const onPostgres = { name: 'postgres', env: { REELGATE_TEST_DATABASE: 'postgres' } }

export default defineConfig({
  test: {
    projects: (isPostgres
      ? [{ ...onPostgres, include: ['test/**/*.test.ts'], exclude: [SQLITE_ONLY] }]
      : [onSqlite, { ...onPostgres, include: ON_POSTGRES_TOO }]
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
