import { readdir, readFile } from 'node:fs/promises'

/** Command lines of this machine's processes that have a word in theirs. */
export async function processesWith(word: string): Promise<string[]> {
  const ids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const lines = await Promise.all(ids.map((id) => readFile(`/proc/${id}/cmdline`, 'utf8').catch(() => '')))
  return lines.filter((line) => line.includes(word))
}
