import type { Sandbox } from '../sandbox/bubblewrap.ts'
import { type MediaEnd, type SealedSource, SIGKILL_EXIT, wasKilled } from '../sandbox/media-run.ts'
import { runMedia } from '../sandbox/run.ts'
import { chunkLimits } from './chunk.ts'
import { stereoFilters } from './downmix.ts'
import { type Entries, number } from './ffprobe-lines.ts'
import { type AudioSource, MAX_AUDIO_TRACKS } from './plan.ts'
import { trackLanguage, trackName } from './track-names.ts'

/** What can be heard of a file. */
type AudioChoices = {
  /** The default one first, the others in the order of the file; none of a silent video. */
  tracks: readonly AudioChoice[]
  /** What the owner must know of the rest, as sentences. */
  notice?: string
}

export type AudioChoice = {
  /** The streams that are heard together, as ffprobe reports them; usually one. */
  streams: readonly Entries[]
  sources: readonly AudioSource[]
  /** Of one among several, where the file names it. */
  language?: string
  name?: string
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
 * Chooses the tracks that can be heard: all that can be decoded, of which the default one of the file comes first, or the first that is not
 * digital silence throughout. Where there are several, each is decoded up to its first sound; one that is silent to its end is read whole.
 * @param streams all audio streams of the file, in its order
 */
export async function chooseAudio(file: AudioFile, streams: readonly Entries[]): Promise<AudioChoices> {
  const choices = listChoices(streams.filter(isDecodableAudio), file.container)
  const faults = new Map(streams.map((stream) => [stream, isDecodableAudio(stream) ? 'is left out' : 'cannot be decoded']))
  const { audible, silent } = await sortBySound(file, choices, (stream) => faults.set(stream, 'cannot be decoded'))
  const [first] = [...audible, ...silent]
  if (!first) return { tracks: [], notice: describeRest(streams, [], faults) }
  const others = [...audible, ...silent].filter((choice) => choice !== first).sort(inOrderOf(streams))
  const names = others.length > 0
  const tracks = [first, ...others].map((choice) => ({
    streams: choice,
    sources: sourcesOf(choice),
    ...(names ? { ...trackLanguage(choice), ...trackName(choice) } : {}),
  }))
  const notices = [describeSilence(streams, silent.includes(choices[0] ?? []) ? choices[0] : undefined, first)]
  notices.push(describeRest(streams, [first, ...others].flat(), faults))
  const notice = notices.filter((sentence) => sentence !== undefined).join(' ')
  return { tracks, ...(notice === '' ? {} : { notice }) }
}

/** An only choice is not looked at. */
async function sortBySound(file: AudioFile, choices: readonly Entries[][], report: (undecodable: Entries) => void) {
  const sorted = { audible: [] as Entries[][], silent: [] as Entries[][] }
  if (choices.length < 2) return { ...sorted, audible: [...choices] }
  for (const choice of choices) {
    if (sorted.audible.length + sorted.silent.length === MAX_AUDIO_TRACKS) break
    const sound = await findSound(file, sourcesOf(choice))
    if (sound === 'undecodable') choice.forEach(report)
    else sorted[sound === 'found' ? 'audible' : 'silent'].push(choice)
  }
  return sorted
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
  const order = inOrderOf(tracks)
  return choices.sort((a, b) => Number(b.some(isDefault)) - Number(a.some(isDefault)) || order(a, b))
}

function inOrderOf(tracks: readonly Entries[]) {
  const place = (choice: readonly Entries[]) => Math.min(...choice.map((track) => tracks.indexOf(track)))
  return (a: readonly Entries[], b: readonly Entries[]) => place(a) - place(b)
}

/**
 * Mono tracks that were recorded to be heard together: a left and a right one, or all uncompressed ones without titles of their own in a
 * camera's container, or in MP4 and MOV those that are enabled at the same time.
 */
function findMicrophones(tracks: readonly Entries[], container: string): Entries[] {
  const [first, ...rest] = tracks.filter(({ channels }) => channels === '1')
  if (!first) return []
  const mono = [first, ...rest.filter((track) => track['tag:language'] === first['tag:language'])].slice(0, MAX_CHANNELS)
  const isTitled = mono.some((track) => track['tag:title'] !== first['tag:title'])
  const isOfCamera = CAMERA_CONTAINERS.includes(container) && !isTitled && mono.every(isUncompressed)
  if (mono.length > 1 && (arePlaced(mono) || isOfCamera)) return mono
  const enabled = container === 'mov' && !isTitled ? mono.filter(isDefault) : []
  return enabled.length > 1 ? enabled : []
}

function isUncompressed({ codec_name }: Entries): boolean {
  return codec_name?.startsWith('pcm_') === true
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

/** @returns such as "Audio track 1 of 3 is silent: track 2 plays unless a viewer chooses another." */
function describeSilence(streams: readonly Entries[], silent: readonly Entries[] | undefined, first: readonly Entries[]) {
  if (!silent || silent === first) return undefined
  const [silentTracks, firstTracks] = [silent, first].map((named) => nameTracks(streams, named))
  const [is, plays] = [silent.length > 1 ? 'are' : 'is', first.length > 1 ? 'play' : 'plays']
  return `Audio ${silentTracks} of ${streams.length} ${is} silent: ${firstTracks} ${plays} unless a viewer chooses another.`
}

function nameTracks(streams: readonly Entries[], named: readonly Entries[]): string {
  const numbers = named.map((stream) => streams.indexOf(stream) + 1).toSorted((a, b) => a - b)
  return `track${numbers.length > 1 ? 's' : ''} ${new Intl.ListFormat('en').format(numbers.map(String))}`
}

/** @returns such as "Audio tracks 1 and 2 of 4 are played; tracks 3 and 4 cannot be decoded." */
function describeRest(tracks: readonly Entries[], chosen: readonly Entries[], faults: ReadonlyMap<Entries, string>) {
  if (chosen.length === tracks.length) return undefined
  if (chosen.length === 0)
    return 'The video is silent, because its sound cannot be decoded: convert the sound to AAC and upload the video again.'
  const rest = Map.groupBy(
    tracks.filter((track) => !chosen.includes(track)),
    (track) => faults.get(track) ?? '',
  )
  const faultOf = (fault: string, named: readonly Entries[]) => (named.length > 1 ? fault.replace(/^is /, 'are ') : fault)
  const played = `Audio ${nameTracks(tracks, chosen)} of ${tracks.length} ${faultOf('is played', chosen)}`
  return `${played}; ${[...rest].map(([fault, named]) => `${nameTracks(tracks, named)} ${faultOf(fault, named)}`).join(', ')}.`
}
