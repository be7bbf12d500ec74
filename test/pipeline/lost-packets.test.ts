import { join } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import { untilFinished } from '../data-folder.ts'
import { ffmpeg, losePackets, newFolder } from '../encode/videos.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { readRows } from '../rows.ts'
import { sampledTests } from '../sample.ts'
import { downloadVideo, writeRendition } from './videos.ts'

// Recordings of which a network or a disk lost a few packets: the decoder complains there, wherever reading begins.

const H264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p']

const { test, draw } = sampledTests('lost packets', 1)

let reelgate: Reelgate & { remove(): Promise<void> }
beforeAll(async () => {
  reelgate = await startSharedReelgate()
})
afterAll(() => reelgate.remove())

test('I-17: a recording that lost a few packets is encoded in chunks, and shows what it shows when it is decoded from its start', async () => {
  const file = join(await newFolder(), 'lost.mp4')
  const inputs = ['-f', 'lavfi', '-i', 'testsrc2=s=160x90:r=5:d=44', '-f', 'lavfi', '-i', 'anoisesrc=seed=7:r=44100:d=44']
  await ffmpeg(...inputs, ...H264, '-g', '15', '-c:a', 'aac', '-b:a', '64k', file)
  await losePackets(file, 'v', [25.4, 36]) // the second is a key frame
  await losePackets(file, 'a', [30])
  const { sequentialChunks, shown } = await encode(file)
  expect(sequentialChunks).toBe(0)
  expect(shown).toHaveLength(44 * 5)
  expect(Math.min(...shown)).toBeGreaterThan(0.9)
})

test('I-17: a video with one key frame, where no two beginnings differ, is encoded in sequence from there on', async () => {
  const file = join(await newFolder(), 'lost.mp4')
  await ffmpeg('-f', 'lavfi', '-i', 'testsrc2=s=64x64:r=5:d=240', ...H264, '-g', '9999', file)
  await losePackets(file, 'v', [2])
  const { sequentialChunks, shown } = await encode(file)
  expect(sequentialChunks).toBeGreaterThan(0)
  expect(sequentialChunks).toBeLessThan(5)
  expect(shown).toHaveLength(240 * 5)
  expect(Math.min(...shown)).toBeGreaterThan(0.9)
})

draw()

/** Uploads a video and waits for its end. @returns the SSIM of each frame with what ffmpeg decodes in one pass */
async function encode(file: string): Promise<{ sequentialChunks: number; shown: number[] }> {
  const videoId = await reelgate.owner.upload('Lost packets', file)
  await untilFinished(reelgate, videoId)
  const chunks = readRows(reelgate, 'select 1 from chunk where video_id = ? and decodes_from_start = 1', videoId)
  const video = (await downloadVideo(reelgate, videoId)).find(({ kind }) => kind === 'video')
  return {
    sequentialChunks: chunks.length,
    shown: video ? await likeness(await writeRendition(await newFolder(), video), file) : [],
  }
}

async function likeness(rendition: string, source: string): Promise<number[]> {
  const graph = '[1:v][0:v]scale2ref[source][shown];[shown][source]ssim=f=-'
  const text = (
    await ffmpeg('-i', rendition, '-i', source, '-filter_complex', graph, '-f', 'null', '-').catch(() => '')
  ).toString()
  return [...text.matchAll(/All:(\d\.\d+)/g)].map(([, value]) => Number(value))
}
