import { type Entries, number } from './ffprobe-lines.ts'

/** How a source's samples become colors, in ffmpeg's names. What its tags leave open is assumed as players assume it. */
export type SourceColor = {
  matrix: (typeof MATRICES)[number]
  range: 'tv' | 'pc'
  primaries: (typeof PRIMARIES)[number]
  transfer: (typeof TRANSFERS)[number]
  alpha: boolean
  /** A palette, or fewer than 8 bits for each of red, green and blue. */
  coarse: boolean
}

/** Those that the scale filter converts exactly. */
const SCALE_MATRICES = ['gbr', 'bt709', 'smpte170m'] as const
const RARE_MATRICES = [
  'smpte240m',
  'fcc',
  'bt2020nc',
  'bt2020c',
  'ycgco',
  'ictcp',
  'chroma-derived-nc',
  'chroma-derived-c',
] as const
const MATRICES = [...SCALE_MATRICES, ...RARE_MATRICES] as const
/** All others are so near to BT.709 that players do not convert them. */
const PRIMARIES = ['bt709', 'bt2020', 'smpte431', 'smpte432'] as const
/** Browsers display all others as BT.709. */
const TRANSFERS = ['bt709', 'smpte2084', 'arib-std-b67'] as const
/** Where only the primaries are tagged. */
const MATRIX_OF_PRIMARIES: { [primaries: string]: SourceColor['matrix'] } = {
  bt709: 'bt709',
  bt470bg: 'smpte170m',
  smpte170m: 'smpte170m',
  smpte240m: 'smpte240m',
  bt2020: 'bt2020nc',
}
const MAX_SD = { widthPx: 1279, heightPx: 576 }

const RGB_FORMAT = /^(gbr|x?rgb|x?bgr|[a0](rgb|bgr)|x2|pal8|mono|xyz)/
const COARSE_FORMAT = /^(pal8|mono|(rgb|bgr)(4(?!8)|8|5))/
const GRAY_FORMAT = /^(gray|ya\d)/
const ALPHA_FORMAT = /^(yuva|gbrap|argb|abgr|rgba|bgra|ya\d|ayuv|vuya)/

/** Reads the color tags of a video stream, and completes them. */
export function describeColor({ pix_fmt = '', color_range, color_space, ...stream }: Entries): SourceColor {
  const isRgb = RGB_FORMAT.test(pix_fmt)
  const isGray = GRAY_FORMAT.test(pix_fmt)
  const isFullByDefault = isGray || pix_fmt.startsWith('yuvj')
  const transfer = TRANSFERS.find((name) => name === stream.color_transfer) ?? 'bt709'
  // Two names of the same coefficients.
  const tagged = MATRICES.find((name) => name === (color_space === 'bt470bg' ? 'smpte170m' : color_space) && name !== 'gbr')
  const isBt2020 = transfer !== 'bt709' || tagged === 'bt2020nc' || tagged === 'bt2020c'
  const isUntagged = stream.color_primaries === undefined || stream.color_primaries === 'unknown'
  const primaries = isUntagged && isBt2020 ? 'bt2020' : (stream.color_primaries ?? '')
  return {
    matrix: isRgb ? 'gbr' : isGray ? 'bt709' : (tagged ?? MATRIX_OF_PRIMARIES[primaries] ?? assumeMatrix(stream)),
    range: isRgb || color_range === 'pc' || (isFullByDefault && color_range !== 'tv') ? 'pc' : 'tv',
    primaries: PRIMARIES.find((name) => name === primaries) ?? 'bt709',
    transfer,
    alpha: ALPHA_FORMAT.test(pix_fmt),
    coarse: COARSE_FORMAT.test(pix_fmt),
  }
}

function assumeMatrix({ width, height }: Entries): SourceColor['matrix'] {
  const isHd = (number(width) ?? 0) > MAX_SD.widthPx || (number(height) ?? 0) > MAX_SD.heightPx
  return isHd ? 'bt709' : 'smpte170m'
}

/** What a source is encoded in. BT.601 stays, which costs nothing and which browsers display right; everything else becomes BT.709. */
export function encodedColor({ matrix, primaries, transfer, alpha }: SourceColor): SourceColor {
  const stays = matrix === 'smpte170m' && primaries === 'bt709' && transfer === 'bt709' && !alpha
  return { matrix: stays ? matrix : 'bt709', range: 'tv', primaries: 'bt709', transfer: 'bt709', alpha: false, coarse: false }
}

/** Transparent areas become black, as around a video: each color times its opacity. */
export const ON_BLACK = 'format=gbrap,premultiply=inplace=1,format=gbrp'

export const TONE_MAPPING = [
  'zscale=t=linear:npl=100',
  'format=gbrpf32le',
  'zscale=p=bt709',
  'tonemap=hable:desat=0',
  'zscale=t=bt709:m=bt709:r=tv',
]

/**
 * The filters that scale frames, convert their colors to those of `encodedColor`, and tag them.
 * @param scale the scale filter with its size
 */
export function colorFilters(color: SourceColor, scale: string): string[] {
  const encoded = encodedColor(color)
  return [...conversion(color, encoded, scale), 'format=yuv420p', tagFilter(encoded)]
}

function conversion(color: SourceColor, encoded: SourceColor, scale: string): string[] {
  // Unless a format is named, ffmpeg may convert RGB between two filters, by a matrix of its choice.
  const tagged = [scale, ...(color.matrix === 'gbr' ? ['format=gbrp16'] : []), tagFilter(color)]
  if (color.transfer !== 'bt709') return [...tagged, ...TONE_MAPPING]
  if (color.primaries !== 'bt709' || RARE_MATRICES.some((name) => name === color.matrix))
    return [...tagged, 'zscale=p=bt709:t=bt709:m=bt709:r=tv']
  if (color.coarse) return ['format=rgb24', scale + scaleOptions('out', encoded)]
  if (color.alpha) return [scale + scaleOptions('in', color), ON_BLACK, `scale=iw:ih${scaleOptions('out', encoded)}`]
  const isUnchanged = color.matrix === encoded.matrix && color.range === encoded.range
  return [isUnchanged ? scale : scale + scaleOptions('in', color) + scaleOptions('out', encoded)]
}

/** Options of the scale filter that name how luma and chroma are coded; RGB needs none. */
export function scaleOptions(side: 'in' | 'out', { matrix, range }: Pick<SourceColor, 'matrix' | 'range'>): string {
  if (matrix === 'gbr') return ''
  return `:${side}_color_matrix=${matrix}:${side}_range=${range}`
}

/** Replaces the tags of frames: what is known from the container is missing in some. */
function tagFilter({ matrix, range, primaries, transfer }: SourceColor): string {
  return `setparams=colorspace=${matrix}:range=${range}:color_primaries=${primaries}:color_trc=${transfer}`
}
