import path from 'node:path'
import { expect, test } from 'vitest'
import { checkResult } from '../../../src/encode/check/check-result.ts'
import { planChunks } from '../../../src/encode/chunk-plan.ts'
import { InexactSeek, MediaFailure } from '../../../src/encode/media-failure.ts'
import { sampleOf } from '../../sample.ts'
import { newChance, rounds } from '../../seeded-random.ts'
import { AUDIO_SOURCES, makeAudioSource } from '../audio-sources.ts'
import { COLOR_SOURCES, drawColors, HDR_SOURCES } from '../color-matrix.ts'
import { makeOddVideo, ODD_VIDEOS } from '../format-matrix.ts'
import { drawVideo, makeGeneratedVideo } from '../generated-videos.ts'
import { count, newFolder, openVideo } from '../videos.ts'
import { HARD_SOURCES, makeHardSource } from './hard-sources.ts'
import { encodeResult } from './results.ts'

// All sources of the suites, and harder ones: what a worker makes of them with our encoder is published.

type Source = { is: string; make(): Promise<string> }

const chance = newChance('recipes of generated videos', 1)
const SOURCES: Source[] = [
  ...Object.keys(HARD_SOURCES).map((is) => ({ is, make: () => makeHardSource(is) })),
  ...ODD_VIDEOS.map((video) => ({ is: `odd: ${video.is}`, make: () => makeOddVideo(video) })),
  ...COLOR_SOURCES.map((source) => ({ is: `colors: ${source.is}`, make: () => drawColors(source) })),
  ...HDR_SOURCES.map(({ transfer, tags, untagged }) => ({ is: `HDR: ${transfer}, ${tags}`, make: () => drawColors(untagged) })),
  ...AUDIO_SOURCES.map((source) => ({ is: `audio: ${source.is}`, make: () => makeAudioSource(source) })),
  ...count(60).map((index) => {
    const video = drawVideo(chance, index)
    const make = async () => {
      const file = path.join(await newFolder(), `source.${video.ends}`)
      await makeGeneratedVideo(video, file)
      return file
    }
    return { is: `generated ${index}: ${video.is}`, make }
  }),
]

test.each(sampleOf('honest results', SOURCES, 2))(
  'J29: what our encoder makes is never refused: $is',
  async ({ make }) => {
    const file = await make()
    const video = await openVideo(file).catch((error) => {
      if (!(error instanceof MediaFailure)) throw error
    })
    if (!video) return // refused by the probe
    const refused: string[] = []
    let checked = 0
    for (const chunk of planChunks(video.plan).slice(0, rounds(3, 20))) {
      try {
        const verdict = await checkResult(await encodeResult(video, chunk), { onMeasured: () => checked++ })
        if (!verdict.ok) refused.push(verdict.reason)
      } catch (error) {
        if (!(error instanceof InexactSeek)) throw error // this server encodes it, in sequence
      }
    }
    expect(refused).toEqual([])
    expect(checked).toBeGreaterThan(0)
  },
  600_000,
)
