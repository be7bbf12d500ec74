import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/postgres/shared.ts'],
    // Processes, not threads: tests start ffmpeg, servers and browsers, and better-sqlite3 is native.
    pool: 'forks',
    // One more than the cores of the smallest machine it must be quick on: half of the time a test waits for something.
    maxWorkers: 3,
    // Only what hangs is ended by time: how fast something comes is for the benches to tell, that it comes is what is tested.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000 } },
  },
})
