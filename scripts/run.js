import { spawn } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'

/** The repository's folder. */
export const root = join(import.meta.dirname, '..')

/** The pinned Node, once packages are installed. */
export const NODE = join(root, 'node_modules/.bin/node')

/** Prints a line of progress to stderr: stdout belongs to the command that is being prepared (`reelgate … --json`). */
export function say(line) {
  process.stderr.write(`${line}\n`)
}

/**
 * Runs a command without showing its output.
 * @throws Error with its output and the command, when it does not exit with 0
 */
export async function run(command, args, { cwd = root, env = {} } = {}) {
  const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text
    })
  }
  const code = await new Promise((resolve) => {
    child.on('close', resolve)
    child.on('error', ({ message }) => {
      output += message
      resolve(undefined)
    })
  })
  if (code === 0) return
  const lines = stripVTControlCharacters(output).trim().split('\n')
  // npm prints the cause first, apt-get and vite last.
  const shown = lines.length > 40 ? [...lines.slice(0, 20), '…', ...lines.slice(-20)] : lines
  throw new Error(`${shown.join('\n')}\n\`${[command, ...args].join(' ')}\` failed: see above for the cause, then start again.`)
}

/** Whether Node was started with this file; `import.meta.main` does not exist in Node 20. */
export function isMain(file) {
  return process.argv[1] !== undefined && realpathSync(process.argv[1]) === file
}

/** Runs a launcher; an error becomes a message on stderr and exit code 1. */
export async function runMain(work) {
  try {
    await work()
  } catch (error) {
    say(error.message)
    process.exitCode = 1
  }
}
