import { encodeBox, encodeFullBox, getBox, parseBoxes, u32, u64 } from './boxes.ts'
import { placeFragment, readFragment } from './fragments.ts'

// Muxes separately encoded tracks into one fragmented MP4 (ISO/IEC 14496-12). Track numbers begin at 1.

/** Ticks a second of the movie header. */
const MOVIE_HZ = 1000

/** One track: its init segment, and by how many of its ticks its frames are decoded before they are shown. */
type Track = { init: Buffer; delayTicks: number }

/** The init segment of an MP4 with several tracks. */
export function joinInits(tracks: readonly Track[], durationS: number): Buffer {
  const header = Buffer.from(boxBytes(tracks[0]?.init ?? Buffer.alloc(0), ['moov', 'mvhd']))
  header.writeUInt32BE(tracks.length + 1, header.length - 4) // the number of the next track
  const length = encodeFullBox('mehd', 1, 0, u64(Math.round(durationS * MOVIE_HZ)))
  return Buffer.concat([
    encodeBox('ftyp', Buffer.from('isom'), u32(512), Buffer.from('isomiso6avc1mp41')),
    encodeBox('moov', header, ...tracks.map(trackBox), encodeBox('mvex', length, ...tracks.map(trackDefaults))),
  ])
}

function trackBox({ init, delayTicks }: Track, index: number): Buffer {
  const trak = getBox(init, ['moov', 'trak'])
  const header = Buffer.from(boxBytes(init, ['moov', 'trak', 'tkhd']))
  header.writeUInt32BE(index + 1, 8 + (header[8] === 1 ? 20 : 12)) // after version, flags and two times
  const others = parseBoxes(init, trak.contentStart, trak.end).filter(({ type }) => type !== 'tkhd' && type !== 'edts')
  // An edit without an end: the time before the first frame is not shown.
  const edits = encodeBox('edts', encodeFullBox('elst', 0, 0, u32(1, 0, delayTicks, 0x1_0000)))
  return encodeBox('trak', header, edits, ...others.map(({ start, end }) => init.subarray(start, end)))
}

function trackDefaults({ init }: Track, index: number): Buffer {
  const defaults = Buffer.from(boxBytes(init, ['moov', 'mvex', 'trex']))
  defaults.writeUInt32BE(index + 1, 12)
  return defaults
}

/**
 * Turns a segment into the next fragment of such an MP4, in place. Its composition offsets then count from the decode time, as some
 * players expect, and none is negative.
 * @param position.sequence from 1
 */
export function joinFragment(fragment: Buffer, position: { track: number; sequence: number; delayTicks: number }): void {
  const { track, sequence, delayTicks } = position
  fragment.writeUInt32BE(track, getBox(fragment, ['moof', 'traf', 'tfhd']).contentStart + 4)
  placeFragment(fragment, { sequence, decodeTime: readFragment(fragment).decodeTime, compositionShift: -delayTicks })
}

function boxBytes(init: Buffer, types: readonly string[]): Buffer {
  const { start, end } = getBox(init, types)
  return init.subarray(start, end)
}
