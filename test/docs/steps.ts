import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** One of the numbered steps of docs/operations.md. */
export type Step = {
  /** What an operator runs, in order. */
  commands: string[]
  /** The first file that it names, and the lines that belong into it. */
  lines: { file: string; text: string } | undefined
}

/** The programs with which a command begins; other words in backquotes are names. */
const COMMAND = /^(?:\w+=\S* )*(?:apt|install|journalctl|mv|nginx|npx reelgate|reelgate|rm|setfacl|systemctl) /

/**
 * Reads a list of numbered steps of docs/operations.md.
 * @param section its heading
 * @param after the end of the paragraph before the list, where the section has several
 */
export async function readSteps(section: string, after = ''): Promise<Step[]> {
  const page = await readFile(join(import.meta.dirname, '../../docs/operations.md'), 'utf8')
  const [, rest = ''] = page.split(new RegExp(`\n##+ ${section}\n`))
  const [text = ''] = rest.split(/\n##? /)
  const at = text.indexOf(after)
  // Up to the first paragraph after it.
  const [list = ''] = (at < 0 ? '' : text.slice(at)).match(/\n1\. [\s\S]*?\n\n(?! |\d)/) ?? []
  const steps = list.split(/\n(?=\d+\. )/).filter((step) => /^\d/.test(step))
  if (steps.length === 0) throw new Error(`docs/operations.md has no numbered steps in "${section}" after "${after}"`)
  return steps.map((step) => {
    const code = Array.from(step.matchAll(/`([^`]+)`/g), ([, inside = '']) => inside.replaceAll(/\s+/g, ' '))
    const file = code.find((word) => /^\/\S+$/.test(word))
    const lines = Array.from(step.matchAll(/^ {7}(.*)$/gm), ([, line]) => `${line}\n`).join('')
    return {
      commands: code.filter((word) => COMMAND.test(word) || word === 'nginx -t'),
      lines: file && lines ? { file, text: lines } : undefined,
    }
  })
}

/** The command with names in place of the page's own, such as VIDEO_ID. */
export function fillIn(command: string, names: Readonly<Record<string, string>>): string {
  return Object.entries(names).reduce((filled, [name, value]) => filled.replaceAll(name, value), command)
}
