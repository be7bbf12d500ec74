import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeVideo } from '../videos.ts'
import { encodeResult } from './check/results.ts'
import { newFolder, openVideo, withoutBubblewrap } from './videos.ts'

// A repair must give the same bytes on another machine.

test('J35: a processor without vector instructions encodes a chunk with the same bytes', async () => {
  const folder = await newFolder()
  const video = await openVideo(await makeVideo({ seconds: 9, size: '320x180' }), folder)
  const sandbox = withoutBubblewrap(video.sandbox)
  const ffmpeg = join(folder, 'ffmpeg')
  // Neither ffmpeg nor x264 may then use them.
  const script = `#!/bin/bash\nexec ${sandbox.tools.ffmpeg} -cpuflags 0 "\${@//open-gop=0/open-gop=0:asm=0}"\n`
  await writeFile(ffmpeg, script)
  await chmod(ffmpeg, 0o755)
  const plain = { ...sandbox, tools: { ...sandbox.tools, ffmpeg } }
  const chunk = { kind: 'video', firstSegment: 1, segmentCount: 1, decodesFromStart: false } as const
  const encode = async (used: typeof sandbox) => {
    const { segments } = await encodeResult({ ...video, sandbox: used }, chunk)
    return Promise.all(segments.map(({ read }) => read()))
  }
  expect(await encode(plain)).toEqual(await encode(sandbox))
})
