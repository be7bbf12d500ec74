import { keepVideo } from '../videos.ts'
import { ffmpeg } from './videos.ts'

// Flat colors side by side, in every way that files have them. What ffmpeg is given makes the file; what is seen is the same colors.

export type ColorSource = {
  file?: 'a.mp4' | 'a.mov' | 'a.mkv' | 'a.avi'
  size?: '1280x720' | '640x360'
  seconds?: number
  /** From planar RGB to what is encoded. */
  filters: string
  encode: string[]
}
type NamedSource = ColorSource & {
  is: string
  /** Where these colors are not what is to be seen. */
  shows?: readonly (readonly number[])[]
  /** The matrix that is kept. */
  matrix?: 'smpte170m'
  tolerance?: number
}

export const COLORS = [
  [255, 0, 0],
  [200, 60, 30],
  [32, 96, 192],
  [255, 255, 255],
  [0, 0, 0],
] as const
/** The middle of each, as a part of the width. */
export const SPOTS = COLORS.map((_, index) => (index + 0.5) / COLORS.length)

const H264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-qp', '1']
const HEVC = ['-c:v', 'libx265', '-preset', 'ultrafast', '-x265-params', 'lossless=1:log-level=none']
/** Pure red is at the edge of BT.709: there the gamma of displays makes several levels of one step of a file of 12 bits. */
const EDGE_TOLERANCE = 8
const UNTAGGED = 'setparams=colorspace=unknown:color_primaries=unknown:color_trc=unknown:range=unknown'

function tags(matrix: string, primaries = matrix, transfer = primaries, range = 'tv'): string {
  return `setparams=colorspace=${matrix}:color_primaries=${primaries}:color_trc=${transfer}:range=${range}`
}

const toYuv = (matrix: string, format = 'yuv420p', range = 'tv') =>
  `scale=out_color_matrix=${matrix}:out_range=${range},format=${format}`

// Planar RGB is tagged first: zscale refuses what it has to guess.
const zscale = (to: string, format: string) =>
  `setparams=colorspace=gbr:color_primaries=bt709:color_trc=bt709:range=pc,zscale=${to},format=${format}`

/** Levels are 8 apart there. What ffmpeg's dithering leaves in the file, as the mean of its pixels: 200 becomes 25 of 31. */
const IN_5_BITS = [
  [255, 0, 0],
  [206, 60, 29],
  [31, 97, 195],
  [255, 255, 255],
  [0, 0, 0],
]
const HALF = COLORS.map((color) => color.map((value) => value / 2))
const GRAYS = COLORS.map(([red, green, blue]) => {
  const gray = 0.299 * red + 0.587 * green + 0.114 * blue
  return [gray, gray, gray]
})

export const COLOR_SOURCES: readonly NamedSource[] = [
  { is: 'of RGB in H.264', filters: 'format=gbrp', encode: ['-c:v', 'libx264rgb', '-preset', 'ultrafast', '-crf', '0'] },
  {
    is: 'of RGB in H.264 and standard definition',
    size: '640x360',
    filters: 'format=gbrp',
    encode: ['-c:v', 'libx264rgb', '-crf', '0'],
  },
  { is: 'of RGB in QuickTime Animation', file: 'a.mov', filters: 'format=rgb24', encode: ['-c:v', 'qtrle'] },
  {
    is: 'of RGB with 5 bits a color',
    file: 'a.mov',
    filters: 'format=rgb24,format=rgb555be',
    encode: ['-c:v', 'qtrle'],
    shows: IN_5_BITS,
  },
  { is: 'of RGB with 16 bits a color', file: 'a.mkv', filters: 'format=gbrp16', encode: ['-c:v', 'ffv1'] },
  {
    is: 'with a palette',
    file: 'a.mov',
    filters: 'split[a][b];[a]palettegen=reserve_transparent=0[p];[b][p]paletteuse=dither=none',
    encode: ['-c:v', 'png', '-pix_fmt', 'pal8'],
  },
  {
    is: 'half transparent, RGB',
    file: 'a.mov',
    filters: 'format=argb,colorchannelmixer=aa=0.5',
    encode: ['-c:v', 'qtrle'],
    shows: HALF,
  },
  {
    is: 'half transparent, ProRes 4444',
    file: 'a.mov',
    filters: `format=gbrap,colorchannelmixer=aa=0.5,${toYuv('bt709', 'yuva444p10le')},${tags('bt709')}`,
    encode: ['-c:v', 'prores_ks', '-profile:v', '4444', '-alpha_bits', '16'],
    shows: HALF,
  },
  { is: 'of BT.709', filters: `${toYuv('bt709')},${tags('bt709')}`, encode: H264 },
  {
    is: 'of BT.709 in standard definition',
    size: '640x360',
    filters: `${toYuv('bt709')},${tags('bt709')}`,
    encode: H264,
  },
  { is: 'of high definition without tags', filters: `${toYuv('bt709')},${UNTAGGED}`, encode: H264 },
  {
    is: 'of standard definition without tags',
    size: '640x360',
    filters: `${toYuv('bt601')},${UNTAGGED}`,
    encode: H264,
    matrix: 'smpte170m',
  },
  {
    is: 'of high definition in SMPTE 170M',
    filters: `${toYuv('bt601')},${tags('smpte170m')}`,
    encode: H264,
    matrix: 'smpte170m',
  },
  {
    is: 'of PAL',
    size: '640x360',
    filters: `${toYuv('bt601')},${tags('bt470bg', 'bt470bg', 'smpte170m')}`,
    encode: H264,
    matrix: 'smpte170m',
  },
  { is: 'of SMPTE 240M', filters: `${toYuv('smpte240m')},${tags('smpte240m')}`, encode: H264 },
  {
    is: 'with only the primaries tagged',
    size: '640x360',
    filters: `${toYuv('bt709')},${tags('unknown', 'bt709', 'unknown')}`,
    encode: H264,
  },
  {
    is: 'of full range',
    filters: `${toYuv('bt709', 'yuv420p', 'pc')},${tags('bt709', 'bt709', 'bt709', 'pc')}`,
    encode: H264,
  },
  {
    is: 'of full range with 10 bits and 4:4:4',
    filters: `${toYuv('bt709', 'yuv444p10le', 'pc')},${tags('bt709', 'bt709', 'bt709', 'pc')}`,
    encode: H264,
  },
  {
    is: 'of Motion JPEG',
    file: 'a.avi',
    filters: toYuv('bt601', 'yuvj422p', 'pc'),
    encode: ['-c:v', 'mjpeg', '-q:v', '1'],
    matrix: 'smpte170m',
  },
  { is: 'of 4:4:4 without tags', filters: `${toYuv('bt709', 'yuv444p')},${UNTAGGED}`, encode: H264 },
  { is: 'of 4:2:2 with 10 bits', filters: `${toYuv('bt709', 'yuv422p10le')},${tags('bt709')}`, encode: H264 },
  { is: 'in black and white', file: 'a.mkv', filters: 'format=gray', encode: ['-c:v', 'ffv1'], shows: GRAYS },
  {
    is: 'of BT.2020 without HDR',
    filters: `${zscale('p=bt2020:t=bt2020-10:m=bt2020nc:r=tv', 'yuv444p12le')},${tags('bt2020nc', 'bt2020', 'bt2020-10')}`,
    encode: HEVC,
    tolerance: EDGE_TOLERANCE,
  },
  {
    is: 'of BT.2020 without HDR, only its matrix tagged',
    filters: `${zscale('p=bt2020:t=bt2020-10:m=bt2020nc:r=tv', 'yuv444p12le')},${tags('bt2020nc', 'unknown')}`,
    encode: HEVC,
    tolerance: EDGE_TOLERANCE,
  },
  {
    is: 'of Display P3',
    filters: `${zscale('p=smpte432:t=bt709:m=bt709:r=tv', 'yuv420p10le')},${tags('bt709', 'smpte432', 'bt709')}`,
    encode: HEVC,
  },
  { is: 'of YCgCo', filters: `${zscale('m=ycgco:r=tv', 'yuv444p')},${tags('ycgco', 'bt709')}`, encode: H264 },
]

const HDR_TAGS = {
  smpte2084: 'bt2020nc bt2020 smpte2084',
  'arib-std-b67': 'bt2020nc bt2020 arib-std-b67',
}

/** Videos with some of their tags, and the same with all of them. */
export const HDR_SOURCES = Object.entries(HDR_TAGS).flatMap(([transfer, all]) =>
  [
    { tags: 'the transfer', left: ['unknown', 'unknown'] },
    { tags: 'transfer and primaries', left: ['unknown', 'bt2020'] },
    { tags: 'transfer and matrix', left: ['bt2020nc', 'unknown'] },
  ].map(({ tags: named, left: [matrix = '', primaries = ''] }) => ({
    transfer,
    tags: named,
    tagged: hdrSource(transfer, all.split(' ')),
    untagged: hdrSource(transfer, [matrix, primaries, transfer]),
  })),
)

function hdrSource(transfer: string, [matrix = '', primaries = '', tagged = '']: string[]): ColorSource {
  return {
    filters: `${zscale(`p=bt2020:t=${transfer}:m=bt2020nc:r=tv:npl=200`, 'yuv420p10le')},${tags(matrix, primaries, tagged)}`,
    encode: HEVC,
  }
}

/** Makes the video, or finds it made. */
export async function drawColors({
  file = 'a.mp4',
  size = '1280x720',
  seconds = 0.6,
  filters,
  encode,
}: ColorSource): Promise<string> {
  const boxes = COLORS.map((color, index) => {
    const location = `x=${index}*iw/${COLORS.length}:w=iw/${COLORS.length}:h=ih`
    return `drawbox=${location}:c=0x${Buffer.from(color).toString('hex')}:t=fill`
  })
  const drawing = `color=s=${size}:d=${seconds}:r=5,format=gbrp,${boxes.join(',')},format=gbrp`
  // Tags set inside the drawing would not reach the encoder.
  const args = ['-f', 'lavfi', '-i', drawing, '-vf', filters, ...encode]
  return keepVideo(args.join(' '), file.slice(1), (kept) => ffmpeg(...args, kept))
}
