import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Processes, not threads: tests start ffmpeg, servers and browsers, and better-sqlite3 is native.
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // A condition that is waited for comes when the machine has time for it; that it comes is what is tested.
    expect: { poll: { timeout: 30_000 } },
  },
})
