import { writeSync } from 'node:fs'

const STDERR = 2

/**
 * Where the log goes: stderr, a line at a time. A line that cannot be written is lost, for a log must never stop the service;
 * pino's own destination ends the process on a full disk, and then waits for the disk for ever.
 */
export const stderrLines = {
  write(line: string): void {
    try {
      let rest = Buffer.from(line)
      while (rest.length > 0) rest = rest.subarray(writeSync(STDERR, rest))
    } catch {
      // Nobody could be told.
    }
  },
}
