import { writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { expect, test } from 'vitest'
import { newFolder } from '../encode/videos.ts'
import { startReelgate } from '../in-process.ts'
import { addFile, makeImage } from './sample-files.ts'

/** One is drawn at a time, and so many wait. */
const TAKEN = 21

test('an account that sends many slow images is refused more of them, and delays no other account', async () => {
  const folder = await newFolder()
  const program = '#!/usr/bin/bash\ncase "$*" in *"-f png_pipe"*) exec /usr/bin/sleep 30;; esac\nexec /usr/bin/ffmpeg "$@"\n'
  await writeFile(join(folder, 'ffmpeg'), program, { mode: 0o755 })
  const reelgate = await startReelgate({ env: { PATH: [folder, process.env.PATH].join(delimiter) } })
  const slow = await makeImage('64x36')
  const { videoId } = await reelgate.owner.credentials('It will come')
  const sentence = 'Too many posters of this account are waiting to be rendered. Try again in a moment.'
  const refused: { status: number; hasRetryAfter: boolean }[] = []
  const both = Promise.withResolvers<void>()
  for (let i = 0; i < TAKEN + 2; i++) void sendSlowImage().catch(() => undefined) // the server ends before they do
  await both.promise
  expect(refused.slice(0, 2)).toEqual(Array(2).fill({ status: 503, hasRetryAfter: true }))

  const ben = await reelgate.newOwner('Ben')
  const video = await ben.credentials('Ben’s')
  const added = await addFile(ben, video.videoId, await makeImage('64x36', 'mjpeg'))
  expect(added.status).toBe(200)

  /** One whose time is over, on a slow machine before all have been sent, is sent again. */
  async function sendSlowImage(): Promise<void> {
    const answer = await addFile(reelgate.owner, videoId, slow)
    const { message } = (await answer.json()) as { message: string }
    if (message !== sentence) return sendSlowImage()
    refused.push({ status: answer.status, hasRetryAfter: answer.headers.has('retry-after') })
    if (refused.length === 2) both.resolve()
  }
})
