import { PassThrough } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Sandbox } from '../sandbox/bubblewrap.ts'
import { runMediaToFiles } from '../sandbox/run.ts'

// Made here and not brought along: 20 seconds at dusk, with a stopwatch that is drawn from boxes, since a machine without a screen
// may have no fonts, and one tone a second.

const DURATION_S = 20
const WIDTH_PX = 426
const HEIGHT_PX = 240
const RATE_HZ = 25
const LIMITS = { cpuS: 120, wallS: 300 }

const INK = '0xf2f0ec'
const LAMP = '0xf2a93b'
const DUSK = ['0x1b2a49', '0x6a2f3f', '0x23514a', '0x111214']

type Box = { x: number; y: number; w: number; h: number }

/** A seven-segment digit of 34×64: the position of each bar, and the digits that show it. */
const DIGIT = { w: 34, h: 64, barPx: 7 }
const BARS: readonly (Box & { litBy: readonly number[] })[] = [
  { x: 0, y: 0, w: 34, h: 7, litBy: [0, 2, 3, 5, 6, 7, 8, 9] },
  { x: 27, y: 0, w: 7, h: 35, litBy: [0, 1, 2, 3, 4, 7, 8, 9] },
  { x: 27, y: 29, w: 7, h: 35, litBy: [0, 1, 3, 4, 5, 6, 7, 8, 9] },
  { x: 0, y: 57, w: 34, h: 7, litBy: [0, 2, 3, 5, 6, 8, 9] },
  { x: 0, y: 29, w: 7, h: 35, litBy: [0, 2, 6, 8] },
  { x: 0, y: 0, w: 7, h: 35, litBy: [0, 4, 5, 6, 8, 9] },
  { x: 0, y: 29, w: 34, h: 7, litBy: [2, 3, 4, 5, 6, 8, 9] },
]

const CLOCK = { x: 142, y: 78 }
const TRACK: Box = { x: 53, y: 184, w: 320, h: 4 }

/**
 * Draws the demo video, as a stream of an MP4 in fragments; its reader sets the pace.
 * @throws Error when this machine's ffmpeg cannot; then the stream has failed as well
 */
export function renderDemoVideo(sandbox: Sandbox, signal: AbortSignal): PassThrough {
  const video = new PassThrough()
  video.on('error', () => undefined) // its reader gets the error; at a stop there may be no reader yet
  runMediaToFiles(sandbox, {
    args: videoArgs(),
    stdout: (bytes) => pipeline(bytes, video, { end: false }),
    limits: LIMITS,
    signal,
  }).then(
    (end) => {
      if (end.exitCode === 0) video.end()
      else video.destroy(new Error(`ffmpeg could not draw the demo video (${end.exitCode}): ${end.stderr.trim()}`))
    },
    (error) => video.destroy(error),
  )
  return video
}

function videoArgs(): string[] {
  return [
    ...['-filter_complex', `${videoTrack()};${audioTrack()}`, '-map', '[picture]', '-map', '[sound]', '-t', String(DURATION_S)],
    ...['-c:v', 'libx264', '-preset', 'veryfast', '-crf', '20', '-g', String(2 * RATE_HZ), '-pix_fmt', 'yuv420p'],
    ...['-c:a', 'aac', '-b:a', '96k', '-ar', '48000'],
    ...['-f', 'mp4', '-movflags', '+frag_keyframe+empty_moov+default_base_moof', 'pipe:1'],
  ]
}

/** Slow colours, the stopwatch, and a lamp that travels along a track once. */
function videoTrack(): string {
  const time = `r=${RATE_HZ}:d=${DURATION_S}`
  const colours = DUSK.map((colour, index) => `c${index}=${colour}`).join(':')
  const tenthsX = CLOCK.x + 2 * (DIGIT.w + 10) + 20
  const still = [
    ...digit(CLOCK.x, 'floor(t/10)', INK),
    ...digit(CLOCK.x + DIGIT.w + 10, 'mod(floor(t),10)', INK),
    box({ x: tenthsX - 17, y: CLOCK.y + DIGIT.h - DIGIT.barPx, w: DIGIT.barPx, h: DIGIT.barPx }, LAMP),
    ...digit(tenthsX, 'mod(floor(10*t),10)', LAMP),
    box(TRACK, `${INK}@0.3`),
  ]
  const lampX = `${TRACK.x}-7+${TRACK.w}*t/${DURATION_S}`
  return [
    `gradients=s=${WIDTH_PX}x${HEIGHT_PX}:${time}:n=4:seed=7:speed=0.02:${colours},${still.join(',')}[scene]`,
    `color=c=${LAMP}:s=14x14:${time}[lamp]`,
    `[scene][lamp]overlay=x='${lampX}':y=${TRACK.y - 5}:eval=frame,format=yuv420p[picture]`,
  ].join(';')
}

/** The drawing of one digit; `value` is ffmpeg's expression of what it shows at the time `t`. */
function digit(x: number, value: string, colour: string): string[] {
  return BARS.map(({ litBy, ...bar }) => {
    const lit = litBy.reduce((bits, number) => bits + 2 ** number, 0)
    return `${box({ ...bar, x: x + bar.x, y: CLOCK.y + bar.y }, colour)}:enable='mod(floor(${lit}/pow(2,${value})),2)'`
  })
}

function box({ x, y, w, h }: Box, colour: string): string {
  return `drawbox=x=${x}:y=${y}:w=${w}:h=${h}:color=${colour}:t=fill`
}

/** A soft tone each second, up and down a pentatonic scale; its phase restarts with each, so nothing clicks. */
function audioTrack(): string {
  const step = 'abs(mod(floor(t),8)-4)'
  const semitones = `(2*${step}+floor((${step}+1)/3))` // 0 2 5 7 9
  const tone = `2*PI*mod(t,1)*220*pow(2,${semitones}/12)`
  const envelope = 'min(1,200*mod(t,1))*exp(-4*mod(t,1))'
  return `aevalsrc='0.25*${envelope}*(sin(${tone})+0.3*sin(2*(${tone})))':s=48000:d=${DURATION_S}[sound]`
}
