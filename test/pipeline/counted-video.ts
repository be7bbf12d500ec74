import { expect } from 'vitest'
import { count, makeNumberedVideo, readNumbers } from '../encode/videos.ts'
import type { Reelgate } from '../reelgate.ts'
import { decode, downloadVideo, newFolder, writeRendition } from './videos.ts'

const FRAMES = 500

/** Twenty seconds, each picture with its number in it, and sound. */
export function makeCountedVideo(path: string): Promise<string> {
  return makeNumberedVideo(path, {
    frames: FRAMES,
    rate: '25',
    widthPx: 640,
    heightPx: 360,
    inputs: ['-f', 'lavfi', '-i', 'anoisesrc=seed=3:amplitude=0.2:sample_rate=48000:duration=20'],
    encode: ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', '250', '-pix_fmt', 'yuv420p', '-c:a', 'aac'],
  })
}

/** As a viewer gets it: every picture once and in order, all of the sound, nothing that a decoder warns of. */
export async function expectWhole(reelgate: Reelgate, videoId: string): Promise<void> {
  const folder = await newFolder()
  for (const download of await downloadVideo(reelgate, videoId)) {
    const path = await writeRendition(folder, download)
    const { bytes, warnings } = await decode(
      path,
      ...(download.kind === 'audio' ? ['-f', 's16le', '-ac', '1', '-ar', '8000', '-'] : ['-f', 'null', '-']),
    )
    expect(warnings).toBe('')
    if (download.kind === 'audio') expect(bytes.length / 2 / 8000).toBeCloseTo(FRAMES / 25, 0)
    else expect(await readNumbers(path)).toEqual(count(FRAMES))
  }
}
