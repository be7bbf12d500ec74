import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import type { Installed } from '../data-folder.ts'
import { startSharedReelgate } from '../in-process.ts'
import { makeLocation } from '../installation-folder.ts'
import type { DatabaseOptions } from '../postgres.ts'
import { runCli } from '../reelgate.ts'

// A refused start is one sentence on stderr that says what to do, exit code 1, and leaves everything as it was.

export const serve = (env: Record<string, string>) => runCli(['serve'], { PORT: '0', REELGATE_LOG_LEVEL: 'silent', ...env })

/** A stopped installation with one account and one uploaded file; the caller removes it. */
export async function startOriginal(options: DatabaseOptions = {}) {
  const original = await startSharedReelgate(options)
  const { owner } = original
  const upload = await owner.credentials('A video')
  await owner.send(upload, new Blob(['This is no video.']))
  await owner.until(upload.videoId, 'Not a media file')
  await original.stop()
  return original
}

/** A copy of a stopped installation, for the test to hurt. */
export async function copyToHurt(original: Installed) {
  const { remove, ...location } = await makeLocation({ copyOf: original })
  onTestFinished(remove)
  return { ...location, start: (env: Record<string, string> = {}) => serve({ ...location.env, ...env }) }
}

export async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-start-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  return folder
}

interface Refusals {
  toRefuse(words: RegExp): void
}
declare module 'vitest' {
  interface Assertion extends Refusals {}
}

expect.extend({
  /** One sentence or two on one line of stderr, nothing else anywhere, exit code 1. */
  toRefuse({ code, stdout, stderr }: Awaited<ReturnType<typeof runCli>>, words: RegExp) {
    const pass = code === 1 && stdout === '' && /^[A-Z/][^\n]*\.\n$/.test(stderr) && words.test(stderr)
    return {
      pass,
      message: () =>
        `expected a refusal like ${words} with code 1, found code ${code}, on stdout ${JSON.stringify(stdout)}, on stderr ${stderr}`,
    }
  },
})
