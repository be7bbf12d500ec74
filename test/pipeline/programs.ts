import { randomInt } from 'node:crypto'
import { chmod, rename, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { createOwner } from '../client.ts'
import { newFolder } from '../encode/videos.ts'
import { shiftedClock } from '../faults/faked-clock.ts'
import * as inProcess from '../in-process.ts'
import { startReelgate } from '../reelgate.ts'

/** What a program is that does what it always does. */
export const PASS_ON = 'exec /usr/bin/$name "$@"'

/** A server with an ffmpeg and an ffprobe that can become others while it runs. */
export async function startWithPrograms() {
  const { programs, PATH } = await newPrograms()
  return { reelgate: await inProcess.startReelgate({ env: { PATH } }), programs }
}

/** The same in a process of its own, whose clock can be put forward. */
export async function startWithProgramsAndClock() {
  const { folder, programs, PATH } = await newPrograms()
  const clock = await newClock(folder)
  const started = await startReelgate({ env: { PATH, ...clock.env } })
  // When its clock leaps, connections that wait for a next request have waited too long: it closes them as that request arrives.
  const owner = createOwner(started.url, started.owner.apiKey, { Connection: 'close' })
  return { reelgate: { ...started, owner }, programs, clock }
}

/** They always print their version. */
async function newPrograms() {
  const folder = await newFolder()
  const programs = {
    becomes: (name: string, script: string) =>
      writeProgram(folder, name, `[ "$1" = -version ] && exec /usr/bin/${name} -version\nname=${name}\n${script}`),
    goes: (name: string) => chmod(join(folder, name), 0o000),
  }
  for (const name of ['ffmpeg', 'ffprobe']) await programs.becomes(name, PASS_ON)
  return { folder, programs, PATH: [folder, process.env.PATH].join(delimiter) }
}

export type Clock = { goesOn(seconds: number): Promise<void>; env: Record<string, string> }

/** A clock that can be put forward while the server runs, the monotonic one too; its encoders do not see it. */
async function newClock(folder: string): Promise<Clock> {
  const file = join(folder, 'clock')
  let aheadS = 0
  const goesOn = (seconds: number) => {
    aheadS += seconds
    return writeFile(file, `+${aheadS}\n`)
  }
  await goesOn(0)
  const { LD_PRELOAD = '' } = shiftedClock('+0')
  return { goesOn, env: { LD_PRELOAD, FAKETIME_TIMESTAMP_FILE: file, FAKETIME_NO_CACHE: '1' } }
}

/** Puts the whole program there in one step: one that is started just then is the one before or this one, never an empty one that ends well. */
export async function writeProgram(folder: string, name: string, script: string): Promise<void> {
  const whole = join(folder, `${name}.new`)
  await writeFile(whole, `#!/usr/bin/bash\nPATH=/usr/bin\n${script}\n`)
  await chmod(whole, 0o755)
  await rename(whole, join(folder, name))
}

/** A number that no other process on this machine has in its command line. */
export function newMark(): string {
  return String(1_000_000 + randomInt(1_000_000_000))
}
