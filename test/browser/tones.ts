import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { keepVideo } from '../videos.ts'

// A video whose audio tracks are tones, so that what is audible in a browser can be told apart.

/** German, English and a commentary in English; the second one is the default. */
export const TONES = [
  { hz: 500, language: 'ger', title: '' },
  { hz: 1300, language: 'eng', title: '' },
  { hz: 2900, language: 'eng', title: 'Commentary' },
] as const
export const [GERMAN, ENGLISH, COMMENTARY] = [0, 1, 2]

/** 40 s, small enough to be encoded in a moment. */
export function makeLanguages(
  tones: readonly (typeof TONES)[number][] = TONES,
  seconds = 40,
  withPicture = true,
): Promise<string> {
  const inputs = tones.flatMap(({ hz }) => ['-f', 'lavfi', '-i', `aevalsrc=0.2*sin(2*PI*${hz}*t):s=48000:d=${seconds}`])
  const named = tones.flatMap(({ language, title }, index) => [
    ...['-map', String(index + Number(withPicture)), `-metadata:s:a:${index}`, `language=${language}`],
    ...[`-metadata:s:a:${index}`, `title=${title}`, `-disposition:a:${index}`, index === ENGLISH ? 'default' : '0'],
  ])
  const picture = ['-f', 'lavfi', '-i', `testsrc2=s=320x180:r=10:d=${seconds}`]
  const args = [
    ...(withPicture ? picture : []),
    ...inputs,
    ...(withPicture ? ['-map', '0'] : []),
    ...named,
    '-c:v',
    'libx264',
    '-preset',
    'ultrafast',
    '-pix_fmt',
    'yuv420p',
  ]
  return keepVideo(args.join(' '), '.mkv', (file) =>
    promisify(execFile)('ffmpeg', ['-nostdin', '-v', 'error', ...args, '-c:a', 'aac', '-b:a', '64k', '-y', file]),
  )
}

/** The loudest of the tones in each stretch of 21 ms that was audible, by its index; -1: none. */
type Sounding = { atS: number; tone: number }
/** When a key was pressed, on the clock of the sound and of the page. */
type Press = { atS: number; atMs: number }

/** From now on the tab notes which tone is audible. After a click only, which lets a page make a sound. */
export async function recordTones(hz: readonly number[]): Promise<void> {
  const context = new AudioContext()
  const recorder = context.createScriptProcessor(1024, 1, 1)
  const sounding: Sounding[] = []
  window.sounding = sounding
  const notePress = () => {
    window.press = { atS: context.currentTime, atMs: performance.now() }
  }
  document.addEventListener('keydown', notePress, { capture: true })
  recorder.onaudioprocess = ({ inputBuffer, playbackTime }) => {
    const samples = inputBuffer.getChannelData(0)
    const levels = hz.map((tone) => {
      let [re, im] = [0, 0]
      for (const [i, sample] of samples.entries()) {
        const phase = (2 * Math.PI * tone * i) / context.sampleRate
        re += sample * Math.cos(phase)
        im += sample * Math.sin(phase)
      }
      return (2 * Math.hypot(re, im)) / samples.length
    })
    const loudest = Math.max(...levels)
    sounding.push({ atS: playbackTime, tone: loudest > 0.02 ? levels.indexOf(loudest) : -1 })
  }
  context.createMediaElementSource(document.querySelector('video')).connect(recorder)
  recorder.connect(context.destination)
  await context.resume()
}

export function readTone(): number | undefined {
  return window.sounding.at(-1)?.tone
}

/**
 * How long the longest stretch of silence was since the last key, how long another tone than this was audible since then, and after how
 * much of that the first segment of a track was there, which a busy machine delays. All in seconds.
 * @param pictureId of the rendition with the picture; 0: there is none
 */
export function judgeSwitch({ to, pictureId }: { to: number; pictureId: number }) {
  const { press } = window
  const after = window.sounding.filter(({ atS }) => atS >= press.atS)
  let [gapS, silentFromS] = [0, undefined as number | undefined]
  for (const { atS, tone } of after) {
    if (tone === -1) silentFromS ??= atS
    else if (silentFromS !== undefined) {
      gapS = Math.max(gapS, atS - silentFromS)
      silentFromS = undefined
    }
  }
  const lastWrong = after.findLast(({ tone }) => tone !== -1 && tone !== to)
  const isSound = (name: string) => Number(/\/(\d+)\/\d+\.m4s$/.exec(name)?.[1] ?? pictureId) !== pictureId
  const loads = performance.getEntriesByType('resource')
  const first = loads.find(({ name, startTime }) => startTime >= press.atMs && isSound(name))
  return { gapS, wrongS: lastWrong ? lastWrong.atS - press.atS : 0, loadedS: first ? (first.responseEnd - press.atMs) / 1000 : 0 }
}

// The browser's names, as far as needed.
type Node = { connect(to: Node): Node }
declare const AudioContext: new () => {
  readonly destination: Node
  readonly sampleRate: number
  readonly currentTime: number
  createScriptProcessor(
    size: number,
    inputs: number,
    outputs: number,
  ): Node & {
    onaudioprocess: (event: { playbackTime: number; inputBuffer: { getChannelData(channel: number): Float32Array } }) => void
  }
  createMediaElementSource(video: unknown): Node
  resume(): Promise<void>
}
declare const window: { sounding: Sounding[]; press: Press }
declare const document: {
  querySelector(selector: 'video'): unknown
  addEventListener(type: 'keydown', listener: () => void, options: { capture: boolean }): void
}
declare const performance: {
  now(): number
  getEntriesByType(type: 'resource'): { name: string; startTime: number; responseEnd: number }[]
}
