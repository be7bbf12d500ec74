import type { PublicCaption } from '../../assets/public-captions.ts'
import { type ShownAudioTrack, showAudioTracks } from '../../assets/shown-audio.ts'
import { SEGMENTS_PER_WINDOW, windowOfAudioSegment, windowOfVideoSegment } from '../../crypto/key-window.ts'
import { AUDIO_CODEC, videoCodec } from '../../encode/ladder.ts'
import {
  AAC_FRAMES_PER_SEGMENT,
  audioSegmentCount,
  findAudioTrack,
  type VideoRendition,
  videoSegmentCount,
} from '../../encode/plan.ts'
import { AAC_FRAME_SAMPLES, AAC_RATE_HZ } from '../../mp4/aac.ts'
import type { PlayableVideo } from './playable-video.ts'

// Playlists as in RFC 8216, computed for each session and never stored: a video's every segment is named before it exists.
// Addresses are relative to /play/<session>/playlist/, so that a proxy may serve Reelgate below a prefix.

const AUDIO_GROUP = 'audio'
const CAPTION_GROUP = 'captions'
/** The file names of segments in addresses. */
export const SEGMENT_FILE_NAME = /^(0|[1-9][0-9]{0,8})(?:\.([1-9][0-9]{0,8}))?\.m4s$/
const CAPTION_NAME = /^caption-([1-9]\d{0,14})$/

/** The name of captions in addresses. */
function captionName(id: number): string {
  return `caption-${id}`
}

/** The number of captions by their name in an address; undefined for any other name. */
export function parseCaptionName(name: string): number | undefined {
  const [, id] = CAPTION_NAME.exec(name) ?? []
  return id === undefined ? undefined : Number(id)
}

/** A playlist of captions: one file for the whole video, which is smaller than one video segment. */
export function captionPlaylist({ plan: { durationS } }: PlayableVideo, id: number): string {
  const lines = ['#EXTM3U', '#EXT-X-VERSION:7', `#EXT-X-TARGETDURATION:${Math.ceil(durationS)}`, '#EXT-X-PLAYLIST-TYPE:VOD']
  return `${[...lines, `#EXTINF:${durationS.toFixed(6)},`, `../file/${captionName(id)}`].join('\n')}\n#EXT-X-ENDLIST\n`
}

/** The multivariant playlist. With a forced bitrate it lists the one rendition nearest to it, which the player then uses. */
export function multivariantPlaylist(
  video: PlayableVideo,
  forcedBitrateKbps: number | null,
  captions: readonly PublicCaption[] = [],
  audioTracks: readonly ShownAudioTrack[] = showAudioTracks(video.plan),
): string {
  const { videoTrack, audioTrack } = video.plan
  const lines = ['#EXTM3U', '#EXT-X-VERSION:7', '#EXT-X-INDEPENDENT-SEGMENTS']
  // Sound alone is the stream itself.
  const withAudio = videoTrack ? audioTracks.length > 0 : audioTracks.length > 1
  if (withAudio) lines.push(...audioTracks.map(audioMedia))
  for (const { id, language, label } of captions) {
    lines.push(
      `#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="${CAPTION_GROUP}",NAME="${label}",LANGUAGE="${language}",DEFAULT=NO,AUTOSELECT=YES,FORCED=NO,URI="${captionName(id)}"`,
    )
  }
  const withCaptions = captions.length > 0
  if (audioTrack && !videoTrack)
    lines.push(
      streamInf({ bandwidthBps: audioTrack.bitrateBps, codecs: [AUDIO_CODEC], withAudio, withCaptions }),
      String(audioTracks.find(({ isDefault }) => isDefault)?.id ?? audioTrack.renditionId),
    )
  for (const rendition of selectRenditions(videoTrack?.renditions ?? [], forcedBitrateKbps)) {
    const codecs = [videoCodec(rendition), ...(audioTrack ? [AUDIO_CODEC] : [])]
    const bandwidthBps = rendition.maxBitrateBps + (audioTrack?.bitrateBps ?? 0)
    lines.push(streamInf({ bandwidthBps, codecs, rendition, rate: video.grid, withAudio, withCaptions }), String(rendition.id))
  }
  return `${lines.join('\n')}\n`
}

function audioMedia({ id, label, language, isDefault }: ShownAudioTrack): string {
  const named = `NAME="${label}"${language === undefined ? '' : `,LANGUAGE="${language}"`}`
  return `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="${AUDIO_GROUP}",${named},DEFAULT=${isDefault ? 'YES' : 'NO'},AUTOSELECT=YES,CHANNELS="2",URI="${id}"`
}

function streamInf(stream: {
  bandwidthBps: number
  codecs: string[]
  rendition?: VideoRendition
  rate?: PlayableVideo['grid']
  withAudio: boolean
  withCaptions: boolean
}): string {
  // A segment may take its encoder's whole buffer of two seconds on top of its own four.
  const attributes = [
    `BANDWIDTH=${Math.ceil(stream.bandwidthBps * 1.5)}`,
    `AVERAGE-BANDWIDTH=${stream.bandwidthBps}`,
    `CODECS="${stream.codecs.join(',')}"`,
  ]
  if (stream.rendition) attributes.push(`RESOLUTION=${stream.rendition.widthPx}x${stream.rendition.heightPx}`)
  if (stream.rendition && stream.rate) attributes.push(`FRAME-RATE=${(stream.rate.rateNum / stream.rate.rateDen).toFixed(3)}`)
  if (stream.withAudio) attributes.push(`AUDIO="${AUDIO_GROUP}"`)
  if (stream.withCaptions) attributes.push(`SUBTITLES="${CAPTION_GROUP}"`)
  return `#EXT-X-STREAM-INF:${[...attributes, 'CLOSED-CAPTIONS=NONE'].join(',')}`
}

function selectRenditions(renditions: readonly VideoRendition[], forcedBitrateKbps: number | null): readonly VideoRendition[] {
  if (forcedBitrateKbps === null || renditions.length === 0) return renditions
  const distance = (rendition: VideoRendition) => Math.abs(rendition.maxBitrateBps - forcedBitrateKbps * 1000)
  return [renditions.reduce((nearest, rendition) => (distance(rendition) < distance(nearest) ? rendition : nearest))]
}

/**
 * The media playlist of one rendition; undefined when the multivariant playlist lists none of that id.
 * @param addressOf the address of one of its files, by the name of the file and the number of the segment
 */
export function mediaPlaylist(
  video: PlayableVideo,
  { renditionId, forcedBitrateKbps }: { renditionId: number; forcedBitrateKbps: number | null },
  addressOf: (fileName: string, number?: number) => string,
): string | undefined {
  const segments = listSegments(video, renditionId, forcedBitrateKbps)
  if (!segments) return undefined
  const targetS = Math.max(...segments.map(({ durationS }) => Math.round(durationS)), 1)
  // The init segment stays clear: its EXT-X-MAP comes before the first EXT-X-KEY.
  const lines = [
    '#EXTM3U',
    '#EXT-X-VERSION:7',
    `#EXT-X-TARGETDURATION:${targetS}`,
    '#EXT-X-PLAYLIST-TYPE:VOD',
    // An IV for each segment would be most of a compressed playlist.
    `#EXT-X-REELGATE-IV-KEY:${video.ivKey.toString('hex')}`,
    `#EXT-X-MAP:URI="${addressOf('init.mp4')}"`,
  ]
  for (const [number, { window, durationS }] of segments.entries()) {
    const isInNextWindow = window !== segments[number - 1]?.window
    if (isInNextWindow) lines.push(`#EXT-X-KEY:METHOD=AES-128,URI="../key/${window}"`)
    lines.push(
      `#EXTINF:${durationS.toFixed(6)},`,
      addressOf(segmentFileName(number, video.repairsOf(renditionId, number)), number),
    )
  }
  return `${lines.join('\n')}\n#EXT-X-ENDLIST\n`
}

/** A repaired segment has another address: under the one before, caches may keep other bytes. */
function segmentFileName(number: number, repairs: number): string {
  return repairs === 0 ? `${number}.m4s` : `${number}.${repairs}.m4s`
}

/** The number of a segment and of its repairs by its name in an address; undefined for any other name. */
export function parseSegmentFileName(name: string): { number: number; repairs: number } | undefined {
  const [, number, repairs = 0] = SEGMENT_FILE_NAME.exec(name) ?? []
  return number === undefined ? undefined : { number: Number(number), repairs: Number(repairs) }
}

type PlaylistSegment = { window: number; durationS: number }

function listSegments(
  video: PlayableVideo,
  renditionId: number,
  forcedBitrateKbps: number | null,
): PlaylistSegment[] | undefined {
  const { videoTrack } = video.plan
  const audioTrack = findAudioTrack(video.plan, renditionId)
  if (audioTrack) {
    return Array.from({ length: audioSegmentCount(audioTrack) }, (_, number) => ({
      window: windowOfAudioSegment(number, video.grid),
      durationS: (sizeOfPart(audioTrack.frameCount, AAC_FRAMES_PER_SEGMENT, number) * AAC_FRAME_SAMPLES) / AAC_RATE_HZ,
    }))
  }
  if (!videoTrack || !selectRenditions(videoTrack.renditions, forcedBitrateKbps).some(({ id }) => id === renditionId))
    return undefined
  return Array.from({ length: videoSegmentCount(videoTrack) }, (_, number) => ({
    window: windowOfVideoSegment(number),
    durationS: (sizeOfPart(videoTrack.frameCount, videoTrack.gopFrames, number) * videoTrack.rateDen) / videoTrack.rateNum,
  }))
}

/** How many of `total` are in part `number` of parts of `size`. */
function sizeOfPart(total: number, size: number, number: number): number {
  return Math.min(size, total - number * size)
}

/** How many key windows a video has, for video and audio together. */
export function windowCount(video: PlayableVideo): number {
  const { videoTrack, audioTrack } = video.plan
  const videoRenditions = videoTrack ? windowOfVideoSegment(videoSegmentCount(videoTrack) - 1) + 1 : 0
  const audioRenditions = audioTrack ? windowOfAudioSegment(audioSegmentCount(audioTrack) - 1, video.grid) + 1 : 0
  return Math.max(videoRenditions, audioRenditions)
}

/** The seconds of video in a key window. */
export function windowLengthS({ grid }: PlayableVideo): number {
  return (SEGMENTS_PER_WINDOW * grid.gopFrames * grid.rateDen) / grid.rateNum
}

/** The seconds of video that the key of a window opens: the last one may be short. */
export function windowDurationS(video: PlayableVideo, window: number): number {
  const windowS = windowLengthS(video)
  return Math.max(0, Math.min(windowS, video.plan.durationS - window * windowS))
}
