import type { Sandbox } from '../sandbox/bubblewrap.ts'
import { type MediaEnd, type SealedSource, SIGKILL_EXIT, wasKilled } from '../sandbox/media-run.ts'
import { runMedia } from '../sandbox/run.ts'
import { chunkLimits } from './chunk.ts'
import { stereoFilters } from './downmix.ts'
import { type Entries, number } from './ffprobe-lines.ts'
import type { AudioSource } from './plan.ts'

/** What is heard of a file. */
export type AudioChoice = {
  /** The streams that are heard together, as ffprobe reports them; usually one, none of a silent video. */
  streams: readonly Entries[]
  sources: readonly AudioSource[]
  /** What the owner must know of the rest, as a sentence. */
  notice?: string
}

// As many as ffmpeg's filters mix.
const MAX_CHANNELS = 64
// Samples of 8 bits, 36 dB louder: what is not silence in them is louder than −84 dB, which some decoders make of digital silence.
const LOUD_SAMPLES = ['volume=36dB', 'aformat=sample_fmts=u8']
const SILENT_SAMPLE = 128
// Cameras write a track for each microphone into these; other programs, one for each language.
const CAMERA_CONTAINERS = ['mov', 'mxf', 'avi']
/** Of audio alone, at the least; usually several hundred times as fast as it plays. */
const MIN_DECODE_SPEED = 10

/**
 * Chooses the track that is heard: the default one if it can be decoded and is not digital silence throughout, else the first such.
 * Where there is a choice, each track is decoded up to its first sound; one that is silent to its end is read whole.
 * @param tracks all audio streams of the file, in its order
 */
export async function chooseAudio(file: AudioFile, tracks: readonly Entries[]): Promise<AudioChoice> {
  const choices = listChoices(tracks.filter(isDecodableAudio), file.container)
  const faults = new Map(tracks.map((track) => [track, isDecodableAudio(track) ? 'is left out' : 'cannot be decoded']))
  let chosen = choices[0] ?? []
  if (choices.length > 1)
    for (const choice of choices) {
      const sound = await findSound(file, sourcesOf(choice))
      if (sound === 'found') {
        chosen = choice
        break
      }
      for (const track of choice) faults.set(track, sound === 'none' ? 'is silent' : 'cannot be decoded')
    }
  return { streams: chosen, sources: sourcesOf(chosen), notice: describeRest(tracks, chosen, faults) }
}

type AudioFile = {
  sandbox: Sandbox
  source: SealedSource
  signal: AbortSignal | undefined
  isPiped: boolean
  /** ffmpeg's first name of it. */
  container: string
  durationS: number
}

/** ffprobe opens each decoder: without one it knows no format of samples. */
export function isDecodableAudio({ codec_type, sample_fmt = 'unknown', sample_rate, channels }: Entries): boolean {
  const channelCount = number(channels) ?? 0
  return (
    codec_type === 'audio' &&
    sample_fmt !== 'unknown' &&
    Number(sample_rate) > 0 &&
    channelCount >= 1 &&
    channelCount <= MAX_CHANNELS
  )
}

/** An audio stream of which ffprobe has found no packet. */
export function isUnknownAudio({ codec_type, codec_name = 'unknown', sample_rate }: Entries): boolean {
  return codec_type === 'audio' && codec_name !== 'unknown' && !(Number(sample_rate) > 0)
}

/** Tracks that could be heard, the best first: each alone, or all of a camera's microphones together. */
function listChoices(tracks: readonly Entries[], container: string): Entries[][] {
  const microphones = findMicrophones(tracks, container)
  const others = tracks.filter((track) => !microphones.includes(track)).map((track) => [track])
  const choices = microphones.length > 0 ? [microphones, ...others] : others
  const order = (choice: readonly Entries[]) => Math.min(...choice.map((track) => tracks.indexOf(track)))
  return choices.sort((a, b) => Number(b.some(isDefault)) - Number(a.some(isDefault)) || order(a) - order(b))
}

/**
 * Mono tracks that were recorded to be heard together: a left and a right one, or all uncompressed ones without titles in a
 * camera's container, or in MP4 and MOV those that are enabled at the same time.
 */
function findMicrophones(tracks: readonly Entries[], container: string): Entries[] {
  const [first, ...rest] = tracks.filter(({ channels }) => channels === '1')
  if (!first) return []
  const mono = [first, ...rest.filter((track) => track['tag:language'] === first['tag:language'])].slice(0, MAX_CHANNELS)
  const isOfCamera =
    CAMERA_CONTAINERS.includes(container) &&
    mono.every((track) => track.codec_name?.startsWith('pcm_') && track['tag:title'] === first['tag:title'])
  if (mono.length > 1 && (arePlaced(mono) || isOfCamera)) return mono
  const enabled = container === 'mov' ? mono.filter(isDefault) : []
  return enabled.length > 1 ? enabled : []
}

function arePlaced(tracks: readonly Entries[]): boolean {
  return ['FL', 'FR'].every((side) => tracks.some(({ channel_layout }) => channel_layout?.includes(`(${side})`)))
}

function isDefault(track: Entries): boolean {
  return track['disposition:default'] === '1'
}

function sourcesOf(tracks: readonly Entries[]): AudioSource[] {
  const isPlaced = tracks.length > 1 && arePlaced(tracks)
  return tracks.map(({ index, channels, channel_layout }) => ({
    stream: Number(index),
    channels: Number(channels),
    ...(channel_layout === undefined || channel_layout === 'unknown' ? {} : { layout: channel_layout }),
    ...(isPlaced ? { isPlaced } : {}),
  }))
}

/** Looks for more than digital silence in any of the sources, and reads each no further. What is not read in time is taken to have it. */
async function findSound(file: AudioFile, sources: readonly AudioSource[]): Promise<'found' | 'none' | 'undecodable'> {
  let hasErrors = false
  for (const source of sources) {
    const end = await readToFirstSound(file, source)
    if (end === 'found' || end.outOfTime || end.exitCode === SIGKILL_EXIT) return 'found'
    if (wasKilled(end)) throw new Error(`ffmpeg crashed with exit code ${end.exitCode}`)
    hasErrors ||= end.exitCode !== 0 || end.errorLines > 0
  }
  return hasErrors ? 'undecodable' : 'none'
}

async function readToFirstSound({ container, durationS, ...file }: AudioFile, source: AudioSource): Promise<MediaEnd | 'found'> {
  const found = new AbortController()
  try {
    return await runMedia(file.sandbox, {
      ...file,
      tool: 'ffmpeg',
      outputArgs: [
        ...['-map', `0:${source.stream}`, '-af', [...stereoFilters(source), ...LOUD_SAMPLES].join(',')],
        ...['-f', 'u8', 'pipe:3'],
      ],
      pipes: [
        async (bytes) => {
          for await (const part of bytes) if (!Buffer.alloc(part.length, SILENT_SAMPLE).equals(part)) found.abort()
        },
      ],
      limits: chunkLimits(0, durationS / MIN_DECODE_SPEED),
      signal: file.signal ? AbortSignal.any([file.signal, found.signal]) : found.signal,
    })
  } catch (error) {
    if (found.signal.aborted && !file.signal?.aborted) return 'found'
    throw error
  }
}

/** @returns such as "Audio track 2 of 4 is played; track 1 is silent, tracks 3 and 4 are left out." */
function describeRest(tracks: readonly Entries[], chosen: readonly Entries[], faults: ReadonlyMap<Entries, string>) {
  if (chosen.length === tracks.length) return undefined
  if (chosen.length === 0)
    return 'The video is silent, because its sound cannot be decoded: convert the sound to AAC and upload the video again.'
  const rest = Map.groupBy(
    tracks.filter((track) => !chosen.includes(track)),
    (track) => faults.get(track) ?? '',
  )
  const nameTracks = (named: readonly Entries[]) => {
    const numbers = named.map((track) => tracks.indexOf(track) + 1)
    return `track${numbers.length > 1 ? 's' : ''} ${new Intl.ListFormat('en').format(numbers.map(String))}`
  }
  const faultOf = (fault: string, named: readonly Entries[]) => (named.length > 1 ? fault.replace(/^is /, 'are ') : fault)
  const played = `Audio ${nameTracks(chosen)} of ${tracks.length} ${faultOf('is played', chosen)}`
  return `${played}; ${[...rest].map(([fault, named]) => `${nameTracks(named)} ${faultOf(fault, named)}`).join(', ')}.`
}
