import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { makeHome, startGroup } from './processes.ts'

// What leaves a browser, as a sound device gets it: PulseAudio, with a device that plays to no one and can be recorded.

const RATE_HZ = 48_000
const STRETCH_MS = 20
const SAMPLES = (RATE_HZ * STRETCH_MS) / 1000
const AUDIBLE = 0.01

/** The loudest tone of a stretch of 20 ms, by its index; -1: none is audible. */
type Recorded = { atMs: number; tone: number }

/** Browsers that are started with `PULSE_SERVER` set to `server` play on it. */
export async function startSoundDevice() {
  const home = await makeHome('pulse')
  const server = `unix:${home.path}/socket`
  const modules = ['module-null-sink sink_name=out', `module-native-protocol-unix auth-anonymous=1 socket=${home.path}/socket`]
  const pulse = startGroup('pulseaudio', ['-n', '--exit-idle-time=-1', '-v', ...modules.flatMap((module) => ['-L', module])], {
    env: { ...process.env, HOME: home.path, XDG_RUNTIME_DIR: home.path },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const { stderr } = pulse.child
  if (!stderr) throw new Error('The output of PulseAudio is not read')
  await new Promise<void>((resolve, reject) => {
    createInterface({ input: stderr }).on('line', (line) => line.includes('Daemon startup complete') && resolve())
    pulse.child.on('close', () => reject(new Error('PulseAudio has ended')))
  })
  return {
    server,
    listen: (hz: readonly number[]) => listen(server, hz),
    async close() {
      await pulse.end()
      await home.remove()
    },
  }
}

/** Notes from now on which of the tones is audible. Times are of the clock of `Date.now()`. */
async function listen(server: string, hz: readonly number[]) {
  const recorded: Recorded[] = []
  const format = ['--format=s16le', '--channels=1', `--rate=${RATE_HZ}`, '--latency-msec=20']
  const recorder = startGroup('parec', ['--device=out.monitor', ...format], {
    env: { ...process.env, PULSE_SERVER: server },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const { stdout } = recorder.child
  if (!stdout) throw new Error('The output of parec is not read')
  let rest = Buffer.alloc(0)
  stdout.on('data', (bytes: Buffer) => {
    const samples = Buffer.concat([rest, bytes])
    const stretches = Math.floor(samples.length / (2 * SAMPLES))
    for (let n = 0; n < stretches; n++) {
      const stretch = samples.subarray(2 * n * SAMPLES, 2 * (n + 1) * SAMPLES)
      recorded.push({ atMs: Date.now() - (stretches - 1 - n) * STRETCH_MS, tone: findTone(stretch, hz) })
    }
    rest = samples.subarray(2 * stretches * SAMPLES)
  })
  await once(stdout, 'data')
  return { recorded, stop: () => recorder.end() }
}

function findTone(stretch: Buffer, hz: readonly number[]): number {
  const levels = hz.map((tone) => {
    let [re, im] = [0, 0]
    for (let i = 0; i < SAMPLES; i++) {
      const phase = (2 * Math.PI * tone * i) / RATE_HZ
      const sample = stretch.readInt16LE(2 * i) / 32_768
      re += sample * Math.cos(phase)
      im += sample * Math.sin(phase)
    }
    return (2 * Math.hypot(re, im)) / SAMPLES
  })
  const loudest = Math.max(...levels)
  return loudest > AUDIBLE ? levels.indexOf(loudest) : -1
}
