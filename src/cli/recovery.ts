import { createInterface } from 'node:readline'

const WORDS = 24
/** What a terminal or a pipe may send before it is taken for something else. */
const LONGEST_INPUT = 10_000

/**
 * Reads the recovery phrase from stdin: never from an argument, which lies in the shell's history and is seen by every user of the
 * machine. Ends after 24 words, at an empty line, or with the input.
 */
export async function promptForPhrase(): Promise<string> {
  if (process.stdin.isTTY) process.stderr.write(`The ${WORDS} words of the recovery phrase, on one line or several:\n`)
  const lines = createInterface({ input: process.stdin, terminal: false })
  let phrase = ''
  for await (const line of lines) {
    phrase += `${line}\n`
    const words = phrase.match(/\p{L}+/gu) ?? []
    if (words.length >= WORDS || phrase.length > LONGEST_INPUT || (process.stdin.isTTY && line.trim() === '')) break
  }
  process.stdin.destroy() // a terminal would keep the process
  return phrase
}

/** Six lines of four, numbered, to be read along the lines. */
export function formatPhrase(words: readonly string[]): string {
  const cells = words.map((word, index) => `${String(index + 1).padStart(2)} ${word.padEnd(9)}`)
  const lines = Array.from({ length: cells.length / 4 }, (_, row) => cells.slice(4 * row, 4 * row + 4).join('  '))
  return lines.map((line) => `  ${line.trimEnd()}`).join('\n')
}
