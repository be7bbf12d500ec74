import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { dataPaths, readConfig } from '../config.ts'
import { Failure } from '../errors.ts'
import { getRecoveryPhrase, hasKeyFile, restoreMasterKey } from '../installation/master-key.ts'
import { type JsonOption, printResult, runCommand } from './run-command.ts'

const WORDS = 24
/** Longer input is not a recovery phrase. */
const MAX_INPUT_CHARACTERS = 10_000

const MasterKeyId = Type.Object({ id: Type.String() })

/** Restores the master key's file from the recovery phrase on stdin. */
export async function restoreKey(options: JsonOption): Promise<void> {
  const config = readConfig()
  const { masterKeyFile } = config
  if (!hasKeyFile(config))
    throw new Failure('invalid', `${config.masterKeyPlace} is set, so no key file is read. Unset it, then restore the file.`)
  if (config.databaseUrl === undefined && !existsSync(dataPaths(config.dataDir).database))
    throw new Failure('not-found', `There is no installation in ${config.dataDir}. Set REELGATE_DATA to its data folder.`)
  const masterKey = await runCommand(config, 'master key id', {})
  if (!Value.Check(MasterKeyId, masterKey))
    throw new Failure('conflict', `${config.dataDir} has no master key yet: its first start creates one. Nothing was changed.`)
  const restored = restoreMasterKey(config, await promptForPhrase(), masterKey.id)
  if (options.json) return printResult({ masterKeyFile, restored }, options)
  printResult(
    restored ? `The master key was restored to ${masterKeyFile}.` : `${masterKeyFile} already contains the master key.`,
    options,
  )
}

export async function showPhrase(options: JsonOption): Promise<void> {
  const phrase = getRecoveryPhrase(readConfig())
  printResult(options.json ? { phrase: phrase.join(' ') } : formatPhrase(phrase), options)
}

/**
 * Reads the recovery phrase from stdin: never from an argument, which the shell's history keeps and every user of the machine
 * can see. Ends after 24 words, at an empty line, or with the input.
 */
export async function promptForPhrase(): Promise<string> {
  if (process.stdin.isTTY) process.stderr.write(`The ${WORDS} words of the recovery phrase, on one line or several:\n`)
  const lines = createInterface({ input: process.stdin, terminal: false })
  let phrase = ''
  for await (const line of lines) {
    phrase += `${line}\n`
    const words = phrase.match(/\p{L}+/gu) ?? []
    const isBlank = process.stdin.isTTY && line.trim() === ''
    if (words.length >= WORDS || phrase.length > MAX_INPUT_CHARACTERS || isBlank) break
  }
  process.stdin.destroy() // a terminal would keep the process running
  return phrase
}

/** Six lines of four numbered words, in reading order. */
export function formatPhrase(words: readonly string[]): string {
  const cells = words.map((word, index) => `${String(index + 1).padStart(2)} ${word.padEnd(9)}`)
  const lines = Array.from({ length: cells.length / 4 }, (_, row) => cells.slice(4 * row, 4 * row + 4).join('  '))
  return lines.map((line) => `  ${line.trimEnd()}`).join('\n')
}
