import { spawnSync } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'

/** The repository's folder. */
export const root = join(import.meta.dirname, '..')

/** The pinned Node, once packages are installed. */
export const NODE = join(root, 'node_modules/.bin/node')

/** One line of progress. On stderr: stdout belongs to the command that is being prepared (`reelgate … --json`). */
export function say(line) {
  process.stderr.write(`${line}\n`)
}

/**
 * Runs a command in silence.
 * @throws Error with what it said and the command, when it does not end with 0
 */
export function run(command, args, { cwd = root, env = {} } = {}) {
  const ended = spawnSync(command, args, {
    cwd,
    env: { ...process.env, ...env },
    encoding: 'utf8',
    maxBuffer: 64 << 20,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  if (ended.status === 0) return
  const output = `${ended.stdout ?? ''}${ended.stderr ?? ''}${ended.error?.message ?? ''}`
  const lines = stripVTControlCharacters(output).trim().split('\n')
  // npm says the cause first, apt-get and vite last.
  const said = lines.length > 40 ? [...lines.slice(0, 20), '…', ...lines.slice(-20)] : lines
  throw new Error(`${said.join('\n')}\n\`${[command, ...args].join(' ')}\` failed: see above for the cause, then start again.`)
}

/** Whether Node was started with this very file; `import.meta.main` is younger than Node 20. */
export function isMain(file) {
  return process.argv[1] !== undefined && realpathSync(process.argv[1]) === file
}

/** Runs a launcher's work; a failure becomes words on stderr and exit code 1. */
export async function runMain(work) {
  try {
    await work()
  } catch (failure) {
    say(failure.message)
    process.exitCode = 1
  }
}
