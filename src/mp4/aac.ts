import { encodeBox, encodeFullBox, u16, u32, u64 } from './boxes.ts'

export const AAC_RATE_HZ = 48_000
export const AAC_FRAME_SAMPLES = 1024
const ADTS_HEADER_BYTES = 7
// AudioSpecificConfig (14496-3): object type 2 (LC), rate index 3 (48 kHz), 2 channels.
const AUDIO_SPECIFIC_CONFIG = Buffer.from([0x11, 0x90])
const CHANNELS = 2
const TRACK_ID = 1
// For a player's seek, every AAC frame decodes independently.
const SYNC_SAMPLE = 0x0200_0000

/** Splits an ADTS stream into raw AAC frames; an incomplete last frame is dropped. @throws RangeError when it is not ADTS */
export async function* splitAdts(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0)
  for await (const part of bytes) {
    rest = Buffer.concat([rest, part])
    while (rest.length >= ADTS_HEADER_BYTES) {
      // Sync word, MPEG-4, layer 0, no checksum; 13 bits of length that straddle three bytes.
      if (rest.readUInt16BE(0) !== 0xfff1) throw new RangeError('not an ADTS stream')
      const frameBytes = (rest.readUInt32BE(3) >>> 13) & 0x1fff
      if (frameBytes < ADTS_HEADER_BYTES) throw new RangeError('not an ADTS stream')
      if (rest.length < frameBytes) break
      yield rest.subarray(ADTS_HEADER_BYTES, frameBytes)
      rest = rest.subarray(frameBytes)
    }
  }
}

/** The init segment of the audio: the same bytes for every video of the same bit rate. */
export function audioInit(bitrateBps: number): Buffer {
  const brands = encodeBox('ftyp', Buffer.from('iso6'), u32(0x200), Buffer.from('iso6cmfcmp41'))
  const entry = encodeBox(
    'mp4a',
    u32(0),
    u16(0, 1),
    u32(0, 0),
    u16(CHANNELS, 16, 0, 0),
    u32(AAC_RATE_HZ * 2 ** 16),
    esds(bitrateBps),
  )
  return soundInit({ brands, description: encodeFullBox('stsd', 0, 0, u32(1), entry), timescale: AAC_RATE_HZ })
}

/** The init segment of one track of audio. @param sound.description an `stsd` box with one entry */
export function soundInit({
  brands,
  description,
  timescale,
}: {
  brands: Buffer
  description: Buffer
  timescale: number
}): Buffer {
  const sampleTable = encodeBox(
    'stbl',
    description,
    encodeFullBox('stts', 0, 0, u32(0)),
    encodeFullBox('stsc', 0, 0, u32(0)),
    encodeFullBox('stsz', 0, 0, u32(0, 0)),
    encodeFullBox('stco', 0, 0, u32(0)),
  )
  const dataInThisFile = encodeBox('dinf', encodeFullBox('dref', 0, 0, u32(1), encodeFullBox('url ', 0, 1)))
  const media = encodeBox(
    'mdia',
    encodeFullBox('mdhd', 0, 0, u32(0, 0, timescale, 0), u16(UNDETERMINED_LANGUAGE, 0)),
    encodeFullBox('hdlr', 0, 0, u32(0), Buffer.from('soun'), u32(0, 0, 0), Buffer.from('SoundHandler\0')),
    encodeBox('minf', encodeFullBox('smhd', 0, 0, u32(0)), dataInThisFile, sampleTable),
  )
  const enabledInMovie = 3
  const track = encodeBox(
    'trak',
    encodeFullBox('tkhd', 0, enabledInMovie, u32(0, 0, TRACK_ID, 0, 0, 0, 0), u16(0, 1, 0x100, 0), UNITY_MATRIX, u32(0, 0)),
    media,
  )
  const header = encodeFullBox(
    'mvhd',
    0,
    0,
    u32(0, 0, 1000, 0, 0x1_0000),
    u16(0x100, 0),
    u32(0, 0),
    UNITY_MATRIX,
    Buffer.alloc(24),
    u32(TRACK_ID + 1),
  )
  const defaults = encodeFullBox('trex', 0, 0, u32(TRACK_ID, 1, AAC_FRAME_SAMPLES, 0, SYNC_SAMPLE))
  return Buffer.concat([brands, encodeBox('moov', header, track, encodeBox('mvex', defaults))])
}

/** A segment of whole AAC frames, of which the first is the video's frame `firstFrame`. */
export function audioSegment(frames: readonly Buffer[], position: { sequence: number; firstFrame: number }): Buffer {
  const moof = (dataOffset: number) =>
    encodeBox(
      'moof',
      encodeFullBox('mfhd', 0, 0, u32(position.sequence)),
      encodeBox(
        'traf',
        // Default-base-is-moof, with a default duration and default flags.
        encodeFullBox('tfhd', 0, 0x2_0028, u32(TRACK_ID, AAC_FRAME_SAMPLES, SYNC_SAMPLE)),
        encodeFullBox('tfdt', 1, 0, u64(position.firstFrame * AAC_FRAME_SAMPLES)),
        // Data offset and a size for each sample.
        encodeFullBox('trun', 0, 0x201, u32(frames.length, dataOffset, ...frames.map((frame) => frame.length))),
      ),
    )
  const mdatHeaderBytes = 8
  return Buffer.concat([moof(moof(0).length + mdatHeaderBytes), encodeBox('mdat', ...frames)])
}

const UNDETERMINED_LANGUAGE = 0x55c4
const UNITY_MATRIX = u32(0x1_0000, 0, 0, 0, 0x1_0000, 0, 0, 0, 0x4000_0000)

/** The elementary stream descriptor (14496-1): each descriptor is a tag, a length below 128, and its content. */
function esds(bitrateBps: number): Buffer {
  const descriptor = (tag: number, ...parts: readonly Uint8Array[]) => {
    const content = Buffer.concat(parts)
    return Buffer.concat([Buffer.from([tag, content.length]), content])
  }
  const specific = descriptor(5, AUDIO_SPECIFIC_CONFIG)
  const aac = 0x40
  const audioStream = 0x15
  const config = descriptor(4, Buffer.from([aac, audioStream, 0, 0, 0]), u32(bitrateBps, bitrateBps), specific)
  const es = descriptor(3, u16(TRACK_ID), Buffer.from([0]), config, descriptor(6, Buffer.from([2])))
  return encodeFullBox('esds', 0, 0, es)
}
