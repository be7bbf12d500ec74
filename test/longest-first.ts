import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * The files that run longest. Started last, one of them would run alone at the end. Some of them wait for nearly all of their time, for
 * leases, retries and slow hosts: two of those at a time, with busy files in between, leave no processor idle.
 */
export const LONGEST = [
  'checks/checks',
  'package/package', // waits
  'browser/stream-limit', // waits
  'browser/playback',
  'browser/engines/firefox-webkit',
  'browser/engines/chromium',
  'conformance/conformance',
  'crash/under-load',
  'backup/backup',
  'browser/one-browser',
  'webhooks/sender', // waits
  'ingest/import-hostile', // waits
  'browser/page-api',
  'faults/crowd',
  'encode/hostile',
  'assets/mp4',
  'browser/captions',
  'browser/console/library',
  'start/demo',
  'usage/usage', // waits
  'http/connections', // waits
  'db/postgres/plans',
  'browser/console/system',
  'browser/refusals',
  'encode/sandbox',
  'faults/postgres-network',
  'browser/small-frames',
  'browser/console/sign-in',
  'browser/console/video',
  'playback/key-pacing',
  'jobs/claims', // waits
  'browser/background-tab', // waits
  // Short to read, and long to run: by their size they would come last.
  'encode/check/hostile',
  'pipeline/damaged-source',
  'db/sqlite/locked', // waits
  'workers/recheck',
  'encode/check/sampled',
  'bench/bench',
  'encode/in-place',
  'browser/stopped',
  'start/sandbox',
  'pipeline/stream-of-uploads',
  'assets/embedded-captions',
  'pipeline/loudness',
  'pipeline/watched-meanwhile',
  'browser/unfinished-video',
  'browser/slow-network',
  'browser/demo',
  'start/upgrade',
  'start/localhost',
  'crash/stall',
  'rate-limits/restart',
  'faults/removal',
]

/** Vitest's order, by how long files took the last time or else by their size, with those of `LONGEST` in front. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const rank = ({ project, moduleId }: TestSpecification) => {
      const location = LONGEST.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`))
      if (project.name !== 'sqlite') return -1 // together, as vitest has them: a worker serves one project
      return location === -1 ? LONGEST.length : location
    }
    return sorted.sort((a, b) => rank(a) - rank(b))
  }
}
