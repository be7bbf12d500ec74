import { MAX_CHAPTERS } from '../catalogue/chapters-store.ts'
import { MAX_PIXELS } from '../sandbox/arguments.ts'
import type { Sandbox } from '../sandbox/bubblewrap.ts'
import { type MediaEnd, type MediaRun, type SealedSource, SIGKILL_EXIT, wasKilled } from '../sandbox/media-run.ts'
import { runMedia } from '../sandbox/run.ts'
import { type AudioChoice, chooseAudio, isDecodableAudio, isUnknownAudio } from './choose-audio.ts'
import { describeColor, type SourceColor } from './color.ts'
import { measureByDecoding } from './decoded-length.ts'
import { describeEmbedded, type Embedded } from './embedded.ts'
import { inputClockArgs, READ_FURTHER } from './encoder.ts'
import { type Entries, entriesOf, fraction, number, ratio, readLines } from './ffprobe-lines.ts'
import { MIN_RATE_HZ } from './frame-rate.ts'
import { type FrameFit, fitFrameTimes, fitRate, peakRate, placeRate } from './frame-times.ts'
import { breakOffNotice, firstOfJoinedNotice, MediaFailure } from './media-failure.ts'
import type { AudioSource } from './plan.ts'
import { readFrameTimes } from './read-frame-times.ts'
import { readTimelines } from './read-timeline.ts'

/** What a source is, as far as planning needs it. Times count from the video's start: the earliest stream's first moment. */
export type Probe = {
  /** ffmpeg's names of the container, such as `mov,mp4,m4a,3gp,3g2,mj2`. */
  formatName: string
  /** Whether a seek in this container is frame-exact; measured on 38 files. */
  isSeekable: boolean
  /** Whether it is read from its start to its end: its clock may jump or begins below zero, or it was cut off so that seeks fail. */
  isPiped?: boolean
  /** Whether its audio is known only after more than 5 MB. */
  hasLateAudio?: boolean
  videoTrack?: {
    /** As shown: rotation and sample aspect ratio applied. May be fractions of a pixel. */
    widthPx: number
    heightPx: number
    /** As the decoder gives it, turned upright; the sample aspect ratio is not applied. */
    storedPx: { widthPx: number; heightPx: number }
    baseRateHz?: number
    averageRateHz?: number
    /** Where the frame rate is constant. */
    fit?: FrameFit
    /** The highest rate that lasts for half a second, as far as it was looked for. */
    peakRateHz?: number
    /** False: its first frame has no time, so that an index does not contain it. */
    firstHasTime?: boolean
    interlaced: boolean
    color: SourceColor
    /** From the video's start to the end of the last frame. */
    durationS: number
    /** When the last frame begins, where it is known. */
    lastFrameS?: number
    /** How long the last frame is shown, where the container says that it is longer than its packet. */
    shownS?: number
  }
  /** The default one. */
  audioTrack?: AudioTrack
  otherAudioTracks?: readonly AudioTrack[]
  /** Captions and chapters inside of the file. */
  embedded: Embedded
  /** What the owner must know of what is left out, as sentences. */
  notices: readonly string[]
}

export type AudioTrack = {
  /** The streams that are heard, together. */
  sources: readonly AudioSource[]
  durationS: number
  /** The duration in the container, where it is longer: a damaged end cannot be measured. */
  announcedS?: number
  /** ffmpeg counts empty packets of Ogg as audio, its joined files from zero, and all packets of ADTS at the rate of the first. */
  hasWrongTimes?: boolean
  language?: string
  name?: string
}

/** The audio tracks of a source, the default one first. */
export function audioTracksIn({ audioTrack, otherAudioTracks = [] }: Pick<Probe, 'audioTrack' | 'otherAudioTracks'>) {
  return audioTrack ? [audioTrack, ...otherAudioTracks] : []
}

const MAX_DURATION_S = 24 * 3600
const MAX_MEGAPIXELS = MAX_PIXELS / 1_000_000
// The rest (mpegts, mpeg, ogg, asf, mp3, aac, mxf) loses or shifts frames after a seek, or was never tried.
const SEEKABLE = ['mov', 'matroska', 'avi', 'flv', 'wav', 'flac']
const PROBE_LIMITS = { cpuS: 30, wallS: 60 }
/** ffmpeg marks their clocks as able to jump: in joined files and recordings with gaps the last time does not tell the duration. */
const JUMPING = ['mpegts', 'mpeg']
// After a seek, the last packets have wrong times.
const READ_COMPLETELY = ['ogg']
/** What is missing at the end of a file that was cut off: no less would be noticed. */
const NOTICED_S = 1
/** From the last key frame on. */
const LAST_PACKETS = ['-read_intervals', '99999%']
/** Packets that only start a decoder are before zero; those of Opus by the most, 0.08 s. */
const MAX_PRIMING_S = 0.1
/** Frames that are shown in another order than they are decoded in go back by less. */
const RESTART_S = 1
/** One for each stream. */
const MAX_REPORT_LINES = 4_000
// Above this a sample aspect ratio is taken for a mistake.
const MAX_ASPECT_RATIO = 20

type Report = {
  streams: readonly Entries[]
  format: Entries
  chapters: readonly Entries[]
  /** It can be opened as a pipe only. */
  isPiped?: boolean
  /** Its audio is known only after more than 5 MB. */
  hasLateAudio?: boolean
}
const REPORTED = [
  'format=format_name,start_time,duration',
  'stream=index,codec_type,codec_name,width,height,sample_aspect_ratio,r_frame_rate,avg_frame_rate,has_b_frames,closed_captions,field_order,pix_fmt,color_range,color_space,color_transfer,color_primaries,sample_fmt,sample_rate,channels,channel_layout,start_time,duration,nb_frames',
  'stream_disposition=attached_pic,default',
  'stream_tags=language,title,DURATION',
  'stream_side_data=rotation',
  'chapter=start_time,end_time',
  'chapter_tags=title',
].join(':')

/**
 * Reads what a source is: its tables and its last packets, not the whole file.
 * @throws MediaFailure when it is no video, or one that cannot be accepted; the message is for its owner
 */
export async function probeSource(sandbox: Sandbox, source: SealedSource, signal?: AbortSignal): Promise<Probe> {
  if (source.sizeBytes < 16) throw notMedia('The file is empty or only a few bytes long: upload it again.')
  const file = { sandbox, source, signal }
  const { report, ...lastPackets } = await readPackets(file, LAST_PACKETS)
  const tables = report ?? (await readReport(file))
  const hasLateAudio = tables.streams.some(isUnknownAudio) && !tables.streams.some(isDecodableAudio)
  if (!hasLateAudio) return describeSource(file, tables, lastPackets)
  const isPiped = tables.isPiped === true
  return describeSource(
    file,
    { ...(await readReport(file, { inputArgs: READ_FURTHER, isPiped })), isPiped, hasLateAudio },
    lastPackets,
  )
}

type SourceFile = { sandbox: Sandbox; source: SealedSource; signal: AbortSignal | undefined }

async function describeSource(file: SourceFile, report: Report, lastPackets: PacketReading): Promise<Probe> {
  const videoTrack = report.streams.find((stream) => stream.codec_type === 'video' && stream['disposition:attached_pic'] !== '1')
  const audioTracks = report.streams.filter((stream) => stream.codec_type === 'audio')
  if (!videoTrack && audioTracks.length === 0) throw notMedia('The file contains neither video nor audio.')
  if (videoTrack) assertSupportedVideo(videoTrack)

  const { format_name: formatName = '' } = report.format
  const [container = ''] = formatName.split(',')
  const reading = chooseReading(report, READ_COMPLETELY.includes(container) ? await readPackets(file, []) : lastPackets)
  const { isPiped, isDamaged } = reading
  const audio = await chooseAudio({ ...file, isPiped, container, durationS: reading.endS }, audioTracks)
  const audioStreams = audio.tracks.flatMap(({ streams }) => streams)
  if (!videoTrack && audioStreams.length === 0)
    throw notMedia('The sound is in a format that this server cannot read: convert it to AAC and upload it again.')
  const indexes = [videoTrack, ...audioStreams].flatMap((stream) => stream?.index ?? [])
  const { extents, isBrokenOff } = await readExtents(file, reading, indexes)
  const announcedS = announcedDuration(report)
  // A stream with a lost end is taken to be as long as the file.
  const lostS = isDamaged ? announcedS : 0
  const startS = number(report.format.start_time) ?? 0
  const findDurationS = (stream: Entries) => {
    // Packets of CAF may have no duration; its table is always right.
    const endS = container === 'caf' ? undefined : extents.get(stream.index)?.endS
    return endS !== undefined ? endS + delayOf(stream) : (number(stream.duration) ?? announcedS)
  }
  const getDurationS = (stream: Entries) => {
    const durationS = findDurationS(stream)
    if (durationS === undefined || !(durationS > 0))
      throw notMedia('The file does not say how long it is, and its end could not be read.')
    if (durationS > MAX_DURATION_S) {
      throw notMedia(`The video is ${Math.round(durationS / 3600)} hours long; at most 24 hours are accepted.`)
    }
    return durationS
  }
  /** AVI knows decoding times only: with B-frames everything is shown that much later. */
  const delayOf = (stream: Entries) =>
    container === 'avi' ? (number(stream.has_b_frames) ?? 0) / (ratio(stream.avg_frame_rate) ?? Number.POSITIVE_INFINITY) : 0
  const isSeekable = SEEKABLE.includes(container) && !isPiped
  const endS = Math.max(...extents.values().map((extent) => extent.endS))
  const breakOff = isBrokenOff ? breakOffNotice(endS, reliableDuration(report)) : undefined
  const isFirstOfJoined = reading.isFirstOfJoined || extents.get(videoTrack?.index)?.isRestarted
  const joined = isFirstOfJoined ? firstOfJoinedNotice(endS) : undefined
  const video = videoTrack && (await describeVideo(videoTrack))
  // ffmpeg gives packets of a Matroska before zero no time, unless it comes from a pipe.
  if (container === 'matroska' && !isPiped && (video?.firstHasTime === false || startS < -MAX_PRIMING_S))
    return describeSource(
      file,
      { ...(await readReport(file, { isPiped: true })), isPiped: true },
      { ...lastPackets, ends: new Map() },
    )
  return {
    formatName,
    isSeekable: isSeekable && video?.firstHasTime !== false,
    isPiped,
    hasLateAudio: reading.hasLateAudio,
    videoTrack: video,
    // Audio without a decoder is left out: the video is worth showing without it.
    ...(await describeAudioTracks(audio.tracks)),
    embedded: describeEmbedded(report, { startS, endS: isBrokenOff ? endS : Math.max(endS, reading.endS) }),
    notices: [breakOff, joined, audio.notice].filter((notice) => notice !== undefined),
  }

  async function describeVideo(stream: Entries): Promise<NonNullable<Probe['videoTrack']>> {
    const interlaced = ['tt', 'bb', 'tb', 'bt'].includes(stream.field_order ?? '')
    const look = { ...describeShape(stream), interlaced, color: describeColor(stream) }
    const knownS = extents.get(stream.index)?.endS ?? 0
    if (audioStreams.length > 0 && knownS < MAX_STILL_S && (await isStill(file, stream, startS)))
      return { ...look, ...STILL, durationS: 1 / STILL.averageRateHz }
    const durationS = Math.max(getDurationS(stream), lostS)
    const extent = extents.get(stream.index)
    const span = { startS, durationS, isSeekable, isPiped, runs: extent?.runs, hasExactTimes: container === 'mov' }
    return {
      ...look,
      ...(await describeTiming(file, stream, span)),
      durationS,
      ...(extent?.lastS === undefined ? {} : { lastFrameS: extent.lastS + delayOf(stream) }),
      ...(isBrokenOff || container !== 'matroska'
        ? {}
        : { shownS: Math.min(durationOf(stream['tag:DURATION']) - startS, announcedS) }),
    }
  }

  async function describeAudioTracks([first, ...others]: readonly AudioChoice[]) {
    const audioTrack = first && (await describeAudio(first))
    if (!audioTrack || others.length === 0) return { audioTrack }
    const otherAudioTracks: AudioTrack[] = []
    for (const { streams, ...other } of others) {
      // What another track says of its length must not make the video fail.
      const isKnown = streams.every((stream) => isPossible(findDurationS(stream)))
      otherAudioTracks.push(isKnown ? await describeAudio({ streams, ...other }) : { ...other, durationS: audioTrack.durationS })
    }
    return { audioTrack, otherAudioTracks }
  }

  async function describeAudio({ streams, ...track }: AudioChoice): Promise<AudioTrack> {
    const statesWrongTimes = container === 'ogg' && streams.some(({ index }) => extents.get(index)?.hasWrongTimes)
    const hasWrongTimes = container === 'aac' || statesWrongTimes
    const statedS = Math.max(...streams.map(getDurationS))
    const durationS = (hasWrongTimes && !videoTrack && (await measureByDecoding(file, streams[0]?.index, statedS))) || statedS
    const tablesS = isBrokenOff ? [] : streams.map((stream) => number(stream.duration) ?? 0)
    return { ...track, durationS, announcedS: Math.max(durationS, lostS, ...tablesS), hasWrongTimes }
  }
}

/** Reads the tables alone, and says what is wrong with a file whose packets could not be read. */
async function readReport(
  { sandbox, source, signal }: SourceFile,
  { inputArgs = [], isPiped = false }: Pick<MediaRun, 'inputArgs' | 'isPiped'> = {},
): Promise<Report> {
  const lines: ReportLines = { others: [], chapters: [] }
  const end = await runMedia(sandbox, {
    tool: 'ffprobe',
    source,
    inputArgs,
    isPiped,
    outputArgs: ['-of', 'compact', '-show_entries', REPORTED],
    stdout: (bytes) => readLines(bytes, (line) => keepLine(lines, line)),
    limits: PROBE_LIMITS,
    signal,
  })
  const size = /Picture size (\d+)x(\d+)/.exec(end.stderr)
  if (size) throw tooManyPixels(Number(size[1]), Number(size[2]))
  throwIfCrashed(end)
  // With seeks, all tables of a fragmented MP4 are read first, and the last one may be cut off.
  if (end.exitCode !== 0 && !isPiped && end.stderr.includes('error reading header'))
    return { ...(await readReport({ sandbox, source, signal }, { inputArgs, isPiped: true })), isPiped: true }
  if (end.exitCode !== 0) throw notMedia(whyUnreadable(end))
  if (lines.others.length > MAX_REPORT_LINES) throw notMedia(TOO_MANY_STREAMS)
  return toReport(lines)
}

function isPossible(durationS: number | undefined): boolean {
  return durationS !== undefined && durationS > 0 && durationS <= MAX_DURATION_S
}

/** A crash is no finding about the file: the machine may be short of memory. */
function throwIfCrashed(end: MediaEnd) {
  if (wasKilled(end) && !end.outOfTime) throw new Error(`ffprobe crashed or was killed, with exit code ${end.exitCode}`)
}

function assertSupportedVideo(videoTrack: Entries) {
  const [width = 0, height = 0] = [number(videoTrack.width), number(videoTrack.height)]
  if (width * height > MAX_PIXELS) throw tooManyPixels(width, height)
  if ((videoTrack.codec_name ?? 'unknown') === 'unknown' || width < 1 || height < 1) {
    throw notMedia('The video is in a format that this server cannot read: convert it to H.264 and upload it again.')
  }
}

/** A stream of a source. Times in seconds from the video's start. `isRestarted`: they begin again, which decoders of pictures do not follow. */
type Extent = { lastS: number; endS: number; hasWrongTimes: boolean; isRestarted?: boolean; runs?: number[][] }
/** By the streams' numbers. */
type Extents = Map<string | undefined, Extent>

/** How a source must be read, after its last packets were. */
type Reading = {
  container: string
  isPiped: boolean
  /** Its last packets tell how far each stream goes. */
  extents?: Extents
  /** How long it is by what is known so far, and by its own tables. */
  endS: number
  announcedS: number
  /** Its tables refer to bytes that it does not have. */
  endsEarly: boolean
  /** It was read completely, with errors. */
  isDamaged: boolean
  /** It consists of joined files, of which ffmpeg opens the first alone. */
  isFirstOfJoined?: boolean
  hasLateAudio: boolean
}

/** What ffmpeg says of a file that is shorter than its own tables. */
const POINTS_PAST_END = /partial file|ended prematurely|discard read did not get all/

/** What ffmpeg says of joined Ogg files with a picture; it follows those of sound alone. */
const JOINED_STREAMS = 'failed to create or replace stream'

function chooseReading(report: Report, { end, ends }: PacketReading): Reading {
  const [container = ''] = (report.format.format_name ?? '').split(',')
  const startS = number(report.format.start_time) ?? 0
  const announcedS = announcedDuration(report)
  const extents: Extents = new Map(
    ends.entries().map(([index, { lastS, endS, ...rest }]) => [index, { lastS: lastS - startS, endS: endS - startS, ...rest }]),
  )
  const readS = Math.max(0, ...extents.values().map((extent) => extent.endS))
  const isOutOfTime = end.outOfTime || end.exitCode === SIGKILL_EXIT
  if (!isOutOfTime) throwIfCrashed(end)
  // A file that was cut off or recorded live can send the seek nowhere: there is nothing, or its first packets pass for its last.
  const isWhole = extents.size > 0 && end.errorLines === 0 && (container === 'mov' || readS + NOTICED_S > announcedS)
  const isJumping = JUMPING.includes(container)
  // Seeks in an AVI whose end is missing leave nothing of it.
  const isPiped = isJumping || report.isPiped === true || (container === 'avi' && !isWhole && !isOutOfTime)
  const endsEarly = !isJumping && ((report.isPiped === true && container !== 'matroska') || POINTS_PAST_END.test(end.stderr))
  const reading = {
    container,
    isPiped,
    endS: Math.max(readS, announcedS),
    announcedS,
    endsEarly,
    isDamaged: false,
    hasLateAudio: report.hasLateAudio === true,
  }
  // A read that a time limit ended did not reach the end.
  if (isOutOfTime && !isJumping) return { ...reading, extents: new Map() }
  if (READ_COMPLETELY.includes(container)) {
    const isFirstOfJoined = end.stderr.includes(JOINED_STREAMS)
    return { ...reading, extents, isDamaged: end.errorLines > 0, isFirstOfJoined }
  }
  return isWhole && !isJumping ? { ...reading, extents } : reading
}

/**
 * How far each stream goes. A stream's stated duration can be wrong (a late start, a longer other stream, a cut), its last packet
 * cannot; reading from the last key frame on takes about 2 MB. A clock that may jump is read completely, as is a file that was cut off.
 * @returns isBrokenOff: it ends before what it contains by its own tables
 */
async function readExtents(
  file: SourceFile,
  { container, isPiped, extents: known, announcedS, endsEarly, hasLateAudio }: Reading,
  indexes: readonly string[],
): Promise<{ extents: Extents; isBrokenOff: boolean }> {
  if (known) return { extents: known, isBrokenOff: false }
  const isJumping = JUMPING.includes(container)
  const inputArgs = inputClockArgs({ isSeekable: SEEKABLE.includes(container) && !isPiped, isPiped, hasLateAudio })
  const extents: Extents = new Map()
  let isBrokenOff = endsEarly
  // Tracks of a clock that may jump together. Others apart: where one of them cannot be read further, the next may be.
  for (const together of isJumping ? [indexes] : indexes.map((index) => [index])) {
    const { end, timelines } = await readTimelines(file, together, { isPiped, inputArgs })
    throwIfCrashed(end)
    for (const [index, timeline] of timelines) extents.set(index, timeline)
    isBrokenOff ||=
      !isJumping && (timelines.values().some((timeline) => timeline.isBrokenOff) || POINTS_PAST_END.test(end.stderr))
  }
  isBrokenOff ||= container === 'avi' && Math.max(...extents.values().map(({ endS }) => endS)) + NOTICED_S < announcedS
  if (extents.size === 0 && (isBrokenOff || container === 'mov'))
    throw notMedia(
      'The file ends before its first frame: it was cut off during its upload, or refers to another file. Upload the whole file again.',
    )
  return { extents, isBrokenOff }
}

/** By the file's own tables, in seconds from the video's start; 0 if they do not say. */
function announcedDuration({ format: { format_name = '', start_time, duration } }: Report): number {
  // Matroska counts from the zero of its clock.
  const fromS = format_name.startsWith('matroska') ? (number(start_time) ?? 0) : 0
  return Math.max(0, (number(duration) ?? fromS) - fromS)
}

/** What a file that was cut off says of its length; 0: nothing that can be relied on. Of fragments and in an AVI ffmpeg estimates it. */
function reliableDuration(report: Report): number {
  const { format_name = '' } = report.format
  const isOfFragments = format_name.startsWith('mov') && report.streams.every(({ nb_frames }) => nb_frames === undefined)
  return isOfFragments || format_name === 'avi' ? 0 : announcedDuration(report)
}

/** By the streams' numbers. */
type StreamEnds = Map<string | undefined, Extent>
type PacketReading = { end: MediaEnd; ends: StreamEnds }

/** @returns the report as well, unless something was wrong: ffprobe takes longer to start than to read either of them. */
async function readPackets({ sandbox, source, signal }: SourceFile, inputArgs: readonly string[]) {
  const ends: StreamEnds = new Map()
  const lines: ReportLines = { others: [], chapters: [] }
  const end = await runMedia(sandbox, {
    tool: 'ffprobe',
    source,
    inputArgs,
    outputArgs: ['-of', 'compact', '-show_entries', `packet=stream_index,pts_time,dts_time,duration_time,size,flags:${REPORTED}`],
    stdout: (bytes) => readLines(bytes, (line) => (line.startsWith('packet|') ? keepEnd(line, ends) : keepLine(lines, line))),
    limits: PROBE_LIMITS,
    signal,
  })
  const isReport = end.exitCode === 0 && end.errorLines === 0 && lines.others.length <= MAX_REPORT_LINES
  return { end, ends, report: isReport ? toReport(lines) : undefined }
}

type ReportLines = { others: string[]; chapters: string[] }

/** One more than are allowed, by which it shows. */
function keepLine({ others, chapters }: ReportLines, line: string) {
  if (!line.startsWith('chapter|')) {
    if (others.length <= MAX_REPORT_LINES) others.push(line)
  } else if (chapters.length <= MAX_CHAPTERS) chapters.push(line)
}

function keepEnd(line: string, ends: StreamEnds) {
  const { stream_index, pts_time, dts_time, duration_time, size, flags = '' } = entriesOf(line)
  if (flags.includes('D')) return // outside the edit list: decoded, never shown
  const beginS = number(pts_time) ?? number(dts_time)
  if (beginS === undefined) return
  const known = ends.get(stream_index)
  const lastS = Math.max(beginS, known?.lastS ?? beginS)
  const endS = Math.max(beginS + (number(duration_time) ?? 0), known?.endS ?? beginS)
  // In a chain of joined files they begin again.
  const isRestarted = beginS + RESTART_S < lastS || known?.isRestarted === true
  const hasWrongTimes = size === '0' || isRestarted || known?.hasWrongTimes === true
  ends.set(stream_index, { lastS, endS, hasWrongTimes, isRestarted })
}

function toReport({ others, chapters }: ReportLines): Report {
  const inSection = (section: string) => others.filter((line) => line.startsWith(`${section}|`)).map(entriesOf)
  // In MPEG-TS those of a program are reported twice.
  const streams = new Map(inSection('stream').map((stream) => [stream.index, stream]))
  return { streams: [...streams.values()], format: inSection('format')[0] ?? {}, chapters: chapters.map(entriesOf) }
}

function describeShape({ sample_aspect_ratio, rotation, ...stream }: Entries) {
  const [width = 1, height = 1] = [number(stream.width), number(stream.height)]
  const displayWidth = width * (ratio(sample_aspect_ratio?.replace(':', '/')) ?? 1)
  const shown = Math.max(displayWidth / height, height / displayWidth) <= MAX_ASPECT_RATIO ? displayWidth : width
  const quarterTurns = Math.round((number(rotation) ?? 0) / 90)
  return quarterTurns % 2 === 0
    ? { widthPx: shown, heightPx: height, storedPx: { widthPx: width, heightPx: height } }
    : { widthPx: height, heightPx: shown, storedPx: { widthPx: height, heightPx: width } }
}

/** The guess for a video that states no rate. */
const USUAL_HZ = 25
/** A picture that is shown as long as the sound lasts. */
const STILL = { baseRateHz: MIN_RATE_HZ, averageRateHz: MIN_RATE_HZ }
/** A single frame that lasts longer is a slide, with a duration of its own. */
const MAX_STILL_S = 1
/** Of covers. Motion JPEG is also a camera's format. */
const IMAGE_CODECS = ['mjpeg', 'png', 'bmp', 'gif', 'webp', 'tiff']

/** Whether a video track is one frame: a cover, whose rate in the container says nothing. */
async function isStill(file: SourceFile, { index = '', codec_name = '', nb_frames }: Entries, startS: number): Promise<boolean> {
  if (nb_frames !== undefined) return nb_frames === '1'
  if (!IMAGE_CODECS.includes(codec_name)) return false
  const stream = { index, startS, durationS: 1, averageHz: 1, isSeekable: false }
  return (await readFrameTimes(file, stream, PROBE_LIMITS)).runs.flat().length === 1
}

type VideoSpan = {
  startS: number
  durationS: number
  isSeekable: boolean
  isPiped: boolean
  /** Times of frames, where they are read already. */
  runs: number[][] | undefined
  hasExactTimes: boolean
}
type Timing = Pick<NonNullable<Probe['videoTrack']>, 'baseRateHz' | 'averageRateHz' | 'fit' | 'peakRateHz' | 'firstHasTime'>

async function describeTiming(
  file: SourceFile,
  { index = '', start_time, r_frame_rate, avg_frame_rate }: Entries,
  { hasExactTimes, isPiped, runs: known, ...video }: VideoSpan,
): Promise<Timing> {
  const [base, average] = [fraction(r_frame_rate), fraction(avg_frame_rate)]
  const [baseRateHz, averageRateHz] = [ratio(r_frame_rate), ratio(avg_frame_rate)]
  const rates = { baseRateHz, averageRateHz }
  const announced = [base, average].filter((rate) => rate !== undefined)
  const hasOneRate = baseRateHz !== undefined && baseRateHz === averageRateHz
  // The tables have the time of every frame: with one rate for all of them, one time is enough.
  if (hasExactTimes && hasOneRate)
    return { ...rates, fit: placeRate(baseRateHz, { firstS: (number(start_time) ?? video.startS) - video.startS, ...video }) }
  const { runs, firstHasTime } = known
    ? { runs: known, firstHasTime: true }
    : await readFrameTimes(file, { index, averageHz: averageRateHz ?? baseRateHz ?? USUAL_HZ, ...video }, PROBE_LIMITS)
  // These clocks are exact: a rate that was measured across the joint of two clips is not. A recording that was paused has another
  // phase from there on.
  const fit =
    isPiped && hasOneRate && base
      ? fitRate(runs, base)
      : (fitFrameTimes(runs, announced) ?? fitFrameTimes(runs.slice(0, 1), announced))
  return { ...rates, fit, peakRateHz: peakRate(runs, Math.ceil((baseRateHz ?? USUAL_HZ) / 2)), firstHasTime }
}

/** Of a Matroska tag such as 00:01:50.021000000, in seconds; without it 0. */
function durationOf(tag: string | undefined): number {
  const [hours = 0, minutes = 0, seconds = 0] = (tag ?? '').split(':').map((part) => number(part) ?? 0)
  return hours * 3600 + minutes * 60 + seconds
}

const TOO_MANY_STREAMS = 'The file has more streams than a video can have.'

function whyUnreadable({ stderr, outOfTime }: MediaEnd): string {
  if (outOfTime) return 'Reading the file took too long: it is damaged, or was made to keep readers busy.'
  const demuxer = /\[(\w+)\b[^\][]*\] Format not on whitelist/.exec(stderr)?.[1]
  if (demuxer) return `The file is of the kind "${demuxer}", which is not read here. ${READ_CONTAINERS}`
  if (stderr.includes('max_streams')) return TOO_MANY_STREAMS
  if (stderr.includes('moov atom not found'))
    return 'The file is not a video, or it was cut off before its index: upload the whole file again.'
  return 'The file is not a video, or it is damaged beyond reading.'
}

const READ_CONTAINERS =
  'Videos are read in MP4, MOV, Matroska, WebM, AVI, FLV, MPEG-TS, MPEG-PS, Ogg, Windows Media and MXF, and sound also in WAV, AIFF, CAF, AU, MP3, AAC, AC-3 and FLAC: convert the file to one of these and upload it again.'

function tooManyPixels(widthPx: number, heightPx: number) {
  return notMedia(`The video is ${widthPx}×${heightPx} pixels; at most ${MAX_MEGAPIXELS} megapixels are accepted.`)
}

function notMedia(reason: string) {
  return new MediaFailure('Not a media file', reason)
}
