import { readdirSync, readFileSync } from 'node:fs'

const MS_PER_TICK = 10

/** What processes have used, and those of their children that have ended. */
export function processorMs(pids: readonly number[]): number {
  const ticks = pids.flatMap((pid) => fieldsOf(pid).slice(11, 15).map(Number))
  return MS_PER_TICK * ticks.reduce((sum, each) => sum + each, 0)
}

/** A process and its children. */
export function familyOf(parent: number): number[] {
  const pids = readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []))
  return [parent, ...pids.filter((pid) => Number(fieldsOf(pid)[1]) === parent)]
}

/** Of /proc/PID/stat, behind the name; none of a process that has ended. */
function fieldsOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? []
  } catch {
    return []
  }
}
