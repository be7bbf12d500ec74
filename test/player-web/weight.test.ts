import { readFile, stat } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

// What a viewer's browser loads before the first frame: the files that Vite built.

const FOLDER = new URL('../../dist/player/', import.meta.url)
/** With hls.js as `web/hls-build.ts` builds it. */
const MAX_SCRIPT_BYTES = 150_000
/** As brotli: `npm run bench -- --only player-bytes` compares what is sent. */
const VIDEO_JS_BYTES = { script: 167_993, style: 11_008 }

type Manifest = Record<string, { file: string; css?: string[]; imports?: string[] }>

test('F-99: the player weighs less than Video.js, with no part of hls.js that our streams never need, and what it loads when it is used is not in it', async () => {
  const manifest: Manifest = JSON.parse(await readFile(new URL('manifest.json', FOLDER), 'utf8'))
  const main = manifest['player/main.ts']
  if (!main) throw new Error('The player is not built: run node scripts/build.js')
  const style = main.css?.[0] ?? ''
  expect(main.imports ?? []).toEqual([])
  expect(await compressedBytes(main.file)).toBeLessThan(Math.min(MAX_SCRIPT_BYTES, VIDEO_JS_BYTES.script))
  expect(await compressedBytes(style)).toBeLessThan(VIDEO_JS_BYTES.style)

  expect(Object.keys(manifest)).toEqual(
    expect.arrayContaining([
      'player/caption-style-settings.ts',
      'player/chapters.ts',
      'player/settings-menu.ts',
      'player/storyboard.ts',
      'player/transcript.ts',
    ]),
  )
})

async function compressedBytes(file: string): Promise<number> {
  return (await stat(fileURLToPath(new URL(`${file}.br`, FOLDER)))).size
}
