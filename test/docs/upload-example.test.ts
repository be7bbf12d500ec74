import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { startSharedReelgate } from '../in-process.ts'

// examples/upload.sh, which the README shows.

const SCRIPT = join(import.meta.dirname, '..', '..', 'examples/upload.sh')

test('the upload example sends a file and prints the id of its video', async () => {
  const reelgate = await startSharedReelgate()
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-example-'))
  onTestFinished(async () => {
    await rm(folder, { recursive: true })
    await reelgate.remove()
  })
  const file = join(folder, 'a file.mp4')
  await writeFile(file, 'no video')
  const env = { ...process.env, REELGATE: reelgate.url }
  const { stdout } = await promisify(execFile)(SCRIPT, [reelgate.owner.apiKey, file, 'Ä & "b"'], { env })
  const response = await reelgate.owner.call('GET', `/api/videos/${stdout.trim()}`)
  const video = (await response.json()) as { title: string; status: string }
  expect(video.title).toBe('Ä & "b"')
  expect(video.status).not.toBe('PRE-Upload')
})
