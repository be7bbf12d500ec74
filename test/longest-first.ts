import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** The files that run longest, most of it waiting for browsers, disks and leases. Started last, one of them would run alone at the end. */
export const LONGEST = [
  'checks/checks',
  'package/package',
  'browser/stream-limit',
  'browser/playback',
  'browser/engines/firefox-webkit',
  'browser/engines/chromium',
  'conformance/conformance',
  'crash/under-load',
  'db/postgres/plans',
  'faults/postgres-network',
  'faults/crowd',
  'playback/key-pacing',
  'browser/small-frames',
  'browser/one-browser',
  'browser/page-api',
  'encode/hostile',
  'encode/sandbox',
  'backup/backup',
  'usage/usage',
  'ingest/import-hostile',
]

/** Vitest's order, by how long files took the last time or else by their size, with those of `LONGEST` in front. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const rank = ({ project, moduleId }: TestSpecification) => {
      const place = LONGEST.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`))
      if (project.name === 'postgres') return -1 // together, as vitest has them: a worker serves one project
      return place === -1 ? LONGEST.length : place
    }
    return sorted.sort((a, b) => rank(a) - rank(b))
  }
}
