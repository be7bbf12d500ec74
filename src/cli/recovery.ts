import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { readConfig } from '../config/config.ts'
import { dataPaths } from '../config/data-paths.ts'
import { MasterKeyRotated } from '../control/commands.ts'
import { Failure } from '../errors.ts'
import { getRecoveryPhrase, hasKeyFile, restoreMasterKey } from '../installation/master-key.ts'
import { PROGRAM_NAME } from '../program-name.ts'
import { isKeptByJournal } from './journal.ts'
import { type JsonOption, parseResult, printResult, runCommand } from './run-command.ts'

const WORDS = 24
/** Longer input is not a recovery phrase. */
const MAX_INPUT_CHARACTERS = 10_000

const MasterKeyIds = Type.Object({ ids: Type.Array(Type.String(), { minItems: 1 }) })

/** Restores the master key's file from the recovery phrase on stdin. */
export async function restoreKey(options: JsonOption): Promise<void> {
  const config = readConfig()
  const { masterKeyFile } = config
  if (!hasKeyFile(config))
    throw new Failure('invalid', `${config.masterKeyVariable} is set, so no key file is read. Unset it, then restore the file.`)
  if (config.databaseUrl === undefined && !existsSync(dataPaths(config.dataDir).database))
    throw new Failure('not-found', `There is no installation in ${config.dataDir}. Set REELGATE_DATA to its data folder.`)
  const masterKey = await runCommand(config, 'master key id', {})
  if (!Value.Check(MasterKeyIds, masterKey))
    throw new Failure('conflict', `${config.dataDir} has no master key yet: its first start creates one. Nothing was changed.`)
  const { restored, isComplete } = restoreMasterKey(config, await promptForPhrase(), masterKey.ids)
  if (options.json) return printResult({ masterKeyFile, restored, ...(!isComplete && { isComplete }) }, options)
  printResult(
    restored ? `The master key was restored to ${masterKeyFile}.` : `${masterKeyFile} already contains the master key.`,
    options,
  )
  if (!isComplete)
    printResult('A rotation is not finished, so the other key is needed, too: run this again with its recovery phrase.', options)
}

export async function showPhrase(options: JsonOption): Promise<void> {
  const phrase = getRecoveryPhrase(readConfig())
  printResult(options.json ? { phrase: phrase.join(' ') } : formatPhrase(phrase), options)
}

/** Replaces the master key and shows the recovery phrase of the new one. */
export async function rotateMasterKey(options: JsonOption): Promise<void> {
  const config = readConfig()
  const rotated = parseResult(MasterKeyRotated, await runCommand(config, 'key rotate-master', {}))
  if (options.json) return printResult(rotated, options)
  const { masterKeyId, rewrapped, unreadable, phrase, removeOldKeyFrom } = rotated
  printResult(`The master key ${masterKeyId} is in use. ${rewrapped} secrets were wrapped again.`, options)
  if (unreadable > 0)
    printResult(
      `${unreadable} values could not be opened: they are damaged, or of an earlier key. Keep its recovery phrase.`,
      options,
    )
  if (removeOldKeyFrom) printResult(`Remove the old key from ${removeOldKeyFrom}: nothing needs it any more.`, options)
  if (phrase === null) return
  if (isKeptByJournal(config)) {
    const sentence =
      'This output is kept in the journal, so it has no secrets. The recovery phrase of the new key, on a terminal:'
    return printResult(`${sentence}\n\n  ${PROGRAM_NAME} key phrase`, options)
  }
  printResult(
    `\nThe recovery phrase of the new key is shown only this once. Write it down and keep it away from this machine.
Keep the old phrase, too, as long as you keep backups made before: it opens only those.\n\n${formatPhrase(phrase.split(' '))}`,
    options,
  )
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
