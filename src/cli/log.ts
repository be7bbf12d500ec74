import { writeSync } from 'node:fs'
import { type DestinationStream, type Logger, pino, stdSerializers } from 'pino'
import { Failure, hostFailure } from '../errors.ts'

const STDERR = 2

/** The log: one JSON value a line. Expected errors are logged as a sentence; only a bug has a stack. */
export function openLog(level: string, destination: DestinationStream = stderrLines): Logger {
  return pino({ level, base: null, serializers: { err: serializeError } }, destination)
}

function serializeError(error: Error): unknown {
  if (!(error instanceof Failure) && !hostFailure(error)) return stdSerializers.err(error)
  const { message, cause } = error
  return { message, ...(cause instanceof Error && { cause: withCode(cause) }) }
}

/** SQLite's messages do not contain their code. */
function withCode(error: Error): string {
  const code = 'code' in error ? `${error.code}: ` : ''
  return error.message.startsWith(code) ? error.message : `${code}${error.message}`
}

/**
 * Writes the log to stderr, a line at a time. A line that cannot be written is lost, because a log must never stop the service:
 * pino's own destination crashes on a full disk, and then waits for the disk for ever.
 */
const stderrLines = {
  write(line: string): void {
    try {
      let rest = Buffer.from(line)
      while (rest.length > 0) rest = rest.subarray(writeSync(STDERR, rest))
    } catch {
      // There is nowhere to report it.
    }
  },
}
