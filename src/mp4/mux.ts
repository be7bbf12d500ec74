import { box, boxesIn, fullBox, getBox, u32, u64 } from './boxes.ts'
import { placeFragment, readFragment } from './fragments.ts'

// Tracks that were made apart, as one fragmented MP4 (ISO/IEC 14496-12). Numbers of tracks begin at 1.

/** Ticks a second of the whole. */
const MOVIE_HZ = 1000

/** One track: its init segment, and by how many of its ticks its pictures are decoded before they are shown. */
export type Track = { init: Buffer; delayTicks: number }

/** The beginning of an MP4 of several tracks. */
export function joinInits(tracks: readonly Track[], durationS: number): Buffer {
  const header = Buffer.from(bytesOf(tracks[0]?.init ?? Buffer.alloc(0), ['moov', 'mvhd']))
  header.writeUInt32BE(tracks.length + 1, header.length - 4) // the number of the next track
  const length = fullBox('mehd', 1, 0, u64(Math.round(durationS * MOVIE_HZ)))
  return Buffer.concat([
    box('ftyp', Buffer.from('isom'), u32(512), Buffer.from('isomiso6avc1mp41')),
    box('moov', header, ...tracks.map(trackOf), box('mvex', length, ...tracks.map(defaultsOf))),
  ])
}

function trackOf({ init, delayTicks }: Track, index: number): Buffer {
  const trak = getBox(init, ['moov', 'trak'])
  const header = Buffer.from(bytesOf(init, ['moov', 'trak', 'tkhd']))
  header.writeUInt32BE(index + 1, 8 + (header[8] === 1 ? 20 : 12)) // after version, flags and two times
  const others = boxesIn(init, trak.contentStart, trak.end).filter(({ type }) => type !== 'tkhd' && type !== 'edts')
  // An edit without an end: what is decoded before the first picture is not shown.
  const edits = box('edts', fullBox('elst', 0, 0, u32(1, 0, delayTicks, 0x1_0000)))
  return box('trak', header, edits, ...others.map(({ start, end }) => init.subarray(start, end)))
}

function defaultsOf({ init }: Track, index: number): Buffer {
  const defaults = Buffer.from(bytesOf(init, ['moov', 'mvex', 'trex']))
  defaults.writeUInt32BE(index + 1, 12)
  return defaults
}

/**
 * Makes a segment the next fragment of such an MP4, in place. Its composition offsets count from the moment of decoding then, which
 * some players take for granted, and none is negative.
 * @param place.sequence from 1
 */
export function joinFragment(fragment: Buffer, place: { track: number; sequence: number; delayTicks: number }): void {
  const { track, sequence, delayTicks } = place
  fragment.writeUInt32BE(track, getBox(fragment, ['moof', 'traf', 'tfhd']).contentStart + 4)
  placeFragment(fragment, { sequence, decodeTime: readFragment(fragment).decodeTime, compositionShift: -delayTicks })
}

function bytesOf(init: Buffer, types: readonly string[]): Buffer {
  const { start, end } = getBox(init, types)
  return init.subarray(start, end)
}
