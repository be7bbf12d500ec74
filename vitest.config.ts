import { defineConfig } from 'vitest/config'
import { SummaryReporter } from './test/summary-reporter.ts'

/** What only SQLite has: its file, its log, its locks. */
const OF_SQLITE = 'test/db/sqlite/**'

/** What is promised of every database: on PostgreSQL, too, in every run. */
const ON_BOTH = ['db/contract/*', 'conformance/*'].map((name) => `test/${name}.test.ts`)

const isPostgres = process.env.REELGATE_TEST_DATABASE === 'postgres'
const onSqlite = { name: 'sqlite', include: ['test/**/*.test.ts'] }
const onPostgres = { name: 'postgres', env: { REELGATE_TEST_DATABASE: 'postgres' } }

export default defineConfig({
  test: {
    projects: (isPostgres
      ? [{ ...onPostgres, include: ['test/**/*.test.ts'], exclude: [OF_SQLITE] }]
      : [onSqlite, { ...onPostgres, include: ON_BOTH }]
    ).map((test) => ({ extends: true, test })),
    globalSetup: ['test/shared-setup.ts'],
    reporters: ['default', new SummaryReporter()],
    // Processes, not threads: tests start ffmpeg, servers and browsers, and better-sqlite3 is native. Each runs one file after the
    // other and loads the server's modules once; a file leaves nothing behind but what the next one may find.
    pool: 'forks',
    isolate: false,
    // More than the cores of the smallest machine it must be quick on: much of the time a test waits for something.
    maxWorkers: 4,
    // Only what hangs is ended by time: how fast something comes is for the benches to tell, that it comes is what is tested.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000 } },
  },
})
