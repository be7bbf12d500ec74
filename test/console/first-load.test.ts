import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'

// What a browser loads before the console shows anything, from what Vite says it built.

const CONSOLE = join(import.meta.dirname, '../../dist/console')
const MAX_FIRST_LOAD_BYTES = 250_000

type Manifest = Record<string, { file: string; isEntry?: boolean; imports?: string[]; dynamicImports?: string[]; css?: string[] }>

test.each(['library/library-page.tsx', 'sign-in/sign-in-page.tsx', 'video/video-page.tsx', 'activity/activity-page.tsx'])(
  'the first load of %s is at most 250 kB, compressed',
  async (page) => {
    const manifest: Manifest = JSON.parse(await readFile(join(CONSOLE, 'manifest.json'), 'utf8'))
    const files = [...filesOf(manifest, ['index.html', page]), 'index.html']
    const contents = await Promise.all(files.map((file) => readFile(join(CONSOLE, file))))
    const bytes = contents.reduce((sum, content) => sum + gzipSync(content).length, 0)
    expect(bytes).toBeLessThanOrEqual(MAX_FIRST_LOAD_BYTES)
    expect(bytes).toBeGreaterThan(50_000) // else this test reads the wrong files
  },
)

/** The scripts and style sheets of these entries, and of all that they import. */
function filesOf(manifest: Manifest, entries: readonly string[], seen = new Set<string>()): Set<string> {
  const files = new Set<string>()
  for (const entry of entries) {
    const chunk = manifest[entry]
    if (!chunk) throw new Error(`The console's build has no ${entry}`)
    if (seen.has(entry)) continue
    seen.add(entry)
    for (const file of [chunk.file, ...(chunk.css ?? []), ...filesOf(manifest, chunk.imports ?? [], seen)]) files.add(file)
  }
  return files
}
