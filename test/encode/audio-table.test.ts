import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { encodeAudioChunk } from '../../src/encode/audio-chunk.ts'
import { measureGain } from '../../src/encode/loudness.ts'
import { audioSegmentCount, audioTracksOf } from '../../src/encode/plan.ts'
import { describeEmbedded } from '../assets/describe-embedded.ts'
import { sampleOf } from '../sample.ts'
import { isLong } from '../seeded-random.ts'
import { AUDIO_SOURCES, type AudioSource, makeAudioSource, TONES_HZ } from './audio-sources.ts'
import { type EncodedVideo, ffmpeg, joinRendition, newFolder, newSink, type OpenVideo, openVideo } from './videos.ts'

const PAGE = join(import.meta.dirname, '../../docs/reference/audio-tracks.md')
const HEAD = `# Audio tracks of files

What plays of them, file by file: the track that plays unless a viewer chooses another first, each with the tones and the ear in
which they were measured, from when to when, and its loudness as ffmpeg's \`ebur128\` has it. The files are 6 s long, one of them 12 s.
The test \`test/encode/audio-table.test.ts\` makes these files and writes this page.

| File | Audio tracks | Captions | Chapters | Said of the video |
|---|---|---|---|---|
`

test('T-24: what plays of the audio tracks, captions and chapters of files is what docs/reference/audio-tracks.md says', async () => {
  const rows: string[] = []
  for (const source of sampleOf('audio tracks of files', AUDIO_SOURCES, 2)) rows.push(await describeRow(source))
  if (isLong) await expect(`${HEAD}${rows.join('\n')}\n`).toMatchFileSnapshot(PAGE)
  else for (const row of rows) expect((await readFile(PAGE, 'utf8')).split('\n')).toContain(row)
})

async function describeRow(source: AudioSource): Promise<string> {
  const file = await makeAudioSource(source)
  const video = await openVideo(file)
  const encoded = await encodeSound(video)
  const folder = await newFolder()
  const tracks: string[] = []
  for (const { renditionId, language, name } of audioTracksOf(video.plan)) {
    const played = await joinRendition(folder, encoded, renditionId)
    const named = [language ?? '', name === undefined ? '' : `"${name}"`].filter((part) => part !== '').join(', ')
    tracks.push(
      [named, `${await describeTones(played)}; ${await describeLoudness(played)}`].filter((part) => part !== '').join(': '),
    )
  }
  const { captions, chapters, notices } = await describeEmbedded(file)
  const audible = tracks.join('<br>').replaceAll('|', '\\|')
  return `| ${source.is} (${source.file.split('.')[1]}) | ${audible} | ${captions} | ${chapters} | ${notices} |`
}

async function encodeSound(video: OpenVideo): Promise<EncodedVideo> {
  const { sandbox, source, plan } = video
  const sink = newSink()
  if (!plan.audioTrack) return sink
  const chunk = { firstSegment: 0, segmentCount: audioSegmentCount(plan.audioTrack), decodesFromStart: true }
  const findGain = async (audioTrack: NonNullable<typeof plan.audioTrack>) => measureGain(sandbox, source, { plan, audioTrack })
  await encodeAudioChunk({ ...video, chunk, findGain }, sink)
  return sink
}

const RATE_HZ = 16_000
const STEP_S = 0.5

/** Such as `500 Hz left, 2–4 s`. */
async function describeTones(file: string): Promise<string> {
  const ears = await Promise.all(
    [0, 1].map(async (ear) => {
      const pcm = await ffmpeg('-i', file, '-af', `pan=mono|c0=c${ear}`, '-ar', String(RATE_HZ), '-f', 'f32le', '-')
      return new Float32Array(pcm.buffer.slice(pcm.byteOffset, pcm.byteOffset + (pcm.length & ~3)))
    }),
  )
  const steps = Math.round((ears[0]?.length ?? 0) / RATE_HZ / STEP_S)
  const spans = TONES_HZ.flatMap((hz) => {
    const levels = ears.map((samples) => Array.from({ length: steps }, (_, step) => levelOf(samples, hz, step)))
    const loudest = Math.max(...levels.flat())
    if (loudest < 0.01) return []
    const audible = levels.map((ear) => ear.map((level) => level > loudest / 2))
    const inEars = ['left', 'right'].filter((_, ear) => audible[ear]?.some(Boolean))
    const at = Array.from({ length: steps }, (_, step) => step).filter((step) => audible.some((ear) => ear[step]))
    const [from, to] = [(at[0] ?? 0) * STEP_S, ((at.at(-1) ?? 0) + 1) * STEP_S]
    return [`${hz} Hz${inEars.length === 1 ? ` ${inEars[0]}` : ''}, ${from}–${to} s`]
  })
  return spans.length > 0 ? spans.join('; ') : 'silence'
}

function levelOf(samples: Float32Array, hz: number, step: number): number {
  let [re, im] = [0, 0]
  const count = RATE_HZ * STEP_S
  for (let i = step * count; i < (step + 1) * count; i++) {
    const phase = (2 * Math.PI * hz * i) / RATE_HZ
    re += (samples[i] ?? 0) * Math.cos(phase)
    im += (samples[i] ?? 0) * Math.sin(phase)
  }
  return (2 * Math.hypot(re, im)) / count
}

async function describeLoudness(file: string): Promise<string> {
  const args = ['-nostdin', '-hide_banner', '-i', file, '-map', '0:a', '-af', 'ebur128=framelog=verbose', '-f', 'null', '-']
  const { stderr } = await promisify(execFile)('ffmpeg', args)
  const lufs = Number(/I: +(-?[\d.]+|-inf)/.exec(stderr)?.[1]?.replace('inf', 'Infinity'))
  return lufs > -70 ? `−${Math.round(-lufs)} LUFS` : 'no loudness'
}
