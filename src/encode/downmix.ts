import type { AudioSource } from './plan.ts'

/** −3 dB: heard as loud from two ears as from one. */
const BOTH_EARS = Math.SQRT1_2.toFixed(4)
/** −2 dB: AAC adds up to 0.5 dB to what it gets, and −1 dB of true peak is what broadcasters and stores ask for. */
const LIMIT = 0.794
/** −3.5 dB: of what is limited all the time, AAC makes more peaks. */
const LIMIT_AFTER_GAIN = 0.668
/** ffmpeg has a layout for each number of channels up to this, and takes that where the file names none. */
const MAX_GUESSED_CHANNELS = 8

// ffmpeg's names of the channels, without L or R at the underscore.
const OF_ONE_SIDE = ['B_', 'S_', 'F_C', 'TF_', 'TB_', 'TS_', 'W_', 'SD_', 'BF_']
const BEHIND_OR_ABOVE = ['BC', 'TC', 'TFC', 'TBC', 'BFC']

/**
 * Keeps true peaks of stereo at 48 kHz below −1 dB, and below −1.5 dB where a gain comes first: at twice the rate, because peaks between
 * the samples count. It forgets a peak within a tenth of a second, so that a chunk comes out the same whatever is decoded before.
 */
export function limitPeaks(gainDb: number | undefined): string[] {
  const gain = gainDb === undefined ? [] : [`volume=${gainDb}dB`]
  const limit = gainDb === undefined ? LIMIT : LIMIT_AFTER_GAIN
  return [...gain, 'aresample=96000', `alimiter=limit=${limit}:level=0:latency=1`, 'aresample=48000']
}

/**
 * The beginning of a filter graph, which ends without a label: stereo from one stream of the input, or the sum of several.
 * @param clock filters that bring a stream to our rate and to the video's time
 * @param input the number of the input that is read
 */
export function mixSources(sources: readonly AudioSource[], clock: readonly string[], input = 0): string {
  const chains = sources.map((source) => `[${input}:${source.stream}]${[...stereoFilters(source), ...clock].join(',')}`)
  if (chains.length === 1) return chains.join()
  const labels = chains.map((_, index) => `[track${input}_${index}]`)
  const tracks = chains.map((chain, index) => `${chain}${labels[index]};`)
  return `${tracks.join('')}${labels.join('')}amix=inputs=${labels.length}:normalize=0`
}

/**
 * As `mixSources`, of a stream whose channels change, so that these filters are made again: by names of channels alone. The channel in
 * the middle is as loud as in a mix of many; mono, which consists of it, is made louder before.
 */
export function mixChangingSources(sources: readonly AudioSource[] | undefined, clock: readonly string[]): string {
  if (sources && sources.length > 1) return mixSources(sources, clock)
  const louderMono = ["volume='if(eq(nb_channels,1),sqrt(2),1)'", ...stereoFilters({ stream: 0, channels: 6, layout: '5.1' })]
  return `[0:${sources?.[0]?.stream ?? 'a:0'}]${['aformat=sample_fmts=fltp', ...louderMono, ...clock].join(',')}`
}

/** The filters that mix one stream to stereo. Not ffmpeg's own: it makes mono 3 dB quieter, and has no way for most numbers of channels. */
export function stereoFilters(source: AudioSource): string[] {
  const { left, right } = earsOf(source)
  // As floating point numbers a sum of channels is not cut off before the limiter.
  return ['aformat=sample_fmts=fltp', `pan=stereo|c0=${left}|c1=${right}`]
}

/** What is heard left and right, as sums of channels; channels that the stream does not have are silent. */
function earsOf({ channels, layout, isPlaced = false }: AudioSource): { left: string; right: string } {
  // Spherical harmonics: the whole, and left minus right.
  if (layout?.startsWith('ambisonic'))
    return { left: `${BOTH_EARS}*c0+${BOTH_EARS}*c1`, right: `${BOTH_EARS}*c0-${BOTH_EARS}*c1` }
  if (layout === undefined && channels > MAX_GUESSED_CHANNELS) {
    const all = Array.from({ length: channels }, (_, channel) => `${BOTH_EARS}*c${channel}`).join('+')
    return { left: all, right: all }
  }
  // One expression for both, so that a stream may change from one to the other.
  if (!isPlaced && channels <= 2 && ['mono', 'stereo', 'downmix'].includes(layout ?? 'mono'))
    return { left: 'FL+FC+DL', right: 'FR+FC+DR' }
  if (!isPlaced && channels === 1) return { left: 'c0', right: 'c0' }
  // In a layout that was only guessed, the channel in the place of the low frequencies may be any other.
  const both = ['FC', ...(layout === undefined && !isPlaced ? ['LFE'] : [])]
  const ear = (side: 'L' | 'R') =>
    [
      `F${side}+D${side}`,
      ...OF_ONE_SIDE.map((name) => `${BOTH_EARS}*${name.replace('_', side)}`),
      ...both.map((name) => `${BOTH_EARS}*${name}`),
      ...BEHIND_OR_ABOVE.map((name) => `0.5*${name}`),
    ].join('+')
  return { left: ear('L'), right: ear('R') }
}
