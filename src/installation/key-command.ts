import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { type MasterKey, readMasterKeyText } from '../crypto/master-key.ts'
import { Failure } from '../errors.ts'

/** A key management service may be slow to answer; a program that asks for a password would wait for ever. */
const MAX_MS = 30_000
/** A key has 64 characters. */
const MAX_OUTPUT_BYTES = 4096

/**
 * The master key that a program prints, such as that of a key management service or a password store. It gets its arguments as they
 * are, without a shell, and this program's environment. What it prints is never logged, errors included: either may hold a secret.
 * @throws Failure `unavailable` when it is missing, fails, takes too long, or prints something else
 */
export function runKeyCommand(
  [program = '', ...args]: readonly string[],
  toolFolders: readonly string[],
  maxMs = MAX_MS,
): MasterKey {
  const path = isAbsolute(program) ? program : toolFolders.map((folder) => join(folder, program)).find(existsSync)
  const fail = (what: string) => new Failure('unavailable', `The program of REELGATE_MASTER_KEY_COMMAND ${what}`)
  if (!path || program.includes('/') !== isAbsolute(program) || !existsSync(path))
    throw fail('does not exist. Name it by its absolute path, or install it in a folder of PATH.')
  const { error, status, signal, stdout } = spawnSync(path, args, {
    cwd: '/',
    stdio: ['ignore', 'pipe', 'ignore'],
    encoding: 'utf8',
    timeout: maxMs,
    killSignal: 'SIGKILL',
    maxBuffer: MAX_OUTPUT_BYTES,
  })
  if (error && 'code' in error) {
    if (error.code === 'ETIMEDOUT') throw fail(`did not end within ${maxMs / 1000} s. It must not wait for input.`)
    if (error.code === 'ENOBUFS') throw fail('printed more than a master key (64 hexadecimal digits).')
    throw fail(`could not be started (${error.code}). It must be a file that this user may run.`)
  }
  if (status !== 0) throw fail(`failed (${signal ?? `exit code ${status}`}). Run it by hand as this user to see why.`)
  const key = readMasterKeyText(stdout)
  if (!key) throw fail('did not print a master key (64 hexadecimal digits).')
  return key
}
