import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { startReelgate } from '../in-process.ts'
import { readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'

test('F-05: a deletion whose files cannot be removed is retried by itself, and goes through when they can', async () => {
  const reelgate = await startReelgate({ video: await makeVideo(), storage: 'folder' })
  const { owner, videoId } = reelgate
  const folder = join(reelgate.dataDir, 'segments', videoId)
  const setImmutable = (sign: '+' | '-') => promisify(execFile)('chattr', ['-R', `${sign}i`, folder])
  onTestFinished(() =>
    setImmutable('-').then(
      () => undefined,
      () => undefined, // it is gone
    ),
  )
  await setImmutable('+')
  await owner.delete([videoId])
  await expect.poll(() => reelgate.output()).toContain('deletion: files of a video could not be removed; retrying')
  expect(readRows(reelgate, 'select id from video')).toHaveLength(1)
  await setImmutable('-')
  await expect.poll(() => readRows(reelgate, 'select id from video')).toEqual([])
  expect(existsSync(folder)).toBe(false)
})
