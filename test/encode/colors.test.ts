import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { extractPosters } from '../../src/encode/extract-posters.ts'
import { sampleOf } from '../sample.ts'
import { COLOR_SOURCES, COLORS, type ColorSource, drawColors, HDR_SOURCES, SPOTS } from './color-matrix.ts'
import { encodeVideo, ffmpeg, joinRendition, newFolder, openVideo } from './videos.ts'

// Flat colors, whose pixels are known, in every way that files have them.

const run = promisify(execFile)

test.each(sampleOf('colors', COLOR_SOURCES, 2))(
  'I-23: a video $is has its colors at every rung and in its posters',
  async ({ shows = COLORS, matrix = 'bt709', tolerance, ...source }) => {
    const { rungs, posters, tags } = await encodeColors(source)
    expect(new Set(tags)).toEqual(new Set([`tv|${matrix}|bt709|bt709`]))
    for (const colors of [...rungs, ...posters]) expectColors(colors, shows, tolerance)
  },
)

test.each(sampleOf('HDR', HDR_SOURCES, 1))(
  'I-24: a video of $transfer with only $tags tagged is tone-mapped as with all tags',
  async ({ tagged, untagged }) => {
    const [whole, part] = await Promise.all([encodeColors(tagged), encodeColors(untagged)])
    expect(part.tags).toEqual(whole.tags)
    expect(part.rungs).toHaveLength(whole.rungs.length)
    for (const [rung, colors] of part.rungs.entries()) expectColors(colors, whole.rungs[rung])
    for (const colors of part.posters) expectColors(colors, whole.rungs[0])
    // Neither black nor white nor grey, as without tone mapping.
    const [red = [], , blue = []] = part.rungs[0] ?? []
    expect((red[0] ?? 0) - (red[2] ?? 0)).toBeGreaterThan(100)
    expect((blue[2] ?? 0) - (blue[0] ?? 0)).toBeGreaterThan(60)
  },
)

type Color = readonly number[]
type Encoded = { rungs: Color[][]; posters: Color[][]; tags: string[] }

async function encodeColors(source: ColorSource): Promise<Encoded> {
  const folder = await newFolder()
  const video = await openVideo(await drawColors(source))
  const encoded = await encodeVideo(video, { chunkSegments: 1 })
  const files = await Promise.all((video.plan.videoTrack?.renditions ?? []).map(({ id }) => joinRendition(folder, encoded, id)))
  const jpegs = await extractPosters(video.sandbox, video.source, video.plan)
  const posters = await Promise.all(
    jpegs.map(async ({ jpeg }, index) => {
      const file = path.join(folder, `${index}.jpg`)
      await writeFile(file, jpeg)
      return readColors(file)
    }),
  )
  return { rungs: await Promise.all(files.map(readColors)), posters, tags: await Promise.all(files.map(readTags)) }
}

/** The colors of the first frame, by its tags. */
async function readColors(file: string): Promise<Color[]> {
  const [widthPx, heightPx] = [160, 90]
  const convert = `scale=${widthPx}:${heightPx}:flags=area:in_color_matrix=auto,format=rgb24`
  const pixels = await ffmpeg('-i', file, '-vf', convert, '-frames:v', '1', '-f', 'rawvideo', '-')
  return SPOTS.map((spot) => {
    const at = 3 * (widthPx * (heightPx / 2) + Math.floor(spot * widthPx))
    return [...pixels.subarray(at, at + 3)]
  })
}

async function readTags(file: string): Promise<string> {
  const shown = 'stream=color_range,color_space,color_transfer,color_primaries'
  return (await run('ffprobe', ['-v', 'error', '-show_entries', shown, '-of', 'compact=p=0:nk=1', file])).stdout.trim()
}

function expectColors(colors: readonly Color[], expected: readonly Color[] = [], tolerance = 4) {
  const distance = colors.flatMap((color, spot) => color.map((value, at) => Math.abs(value - (expected[spot]?.[at] ?? 999))))
  expect(Math.max(...distance), `${JSON.stringify(colors)} instead of ${JSON.stringify(expected)}`).toBeLessThanOrEqual(tolerance)
}
