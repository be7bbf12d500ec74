import { readdir, readFile } from 'node:fs/promises'

/** Ids of this machine's processes that have a word in their command lines. */
export async function processesWith(word: string): Promise<number[]> {
  const ids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const lines = await Promise.all(ids.map((id) => readFile(`/proc/${id}/cmdline`, 'utf8').catch(() => '')))
  return ids.filter((_, i) => lines[i]?.includes(word)).map(Number)
}

/** Sends SIGTERM to the processes that have a word in their command lines. */
export async function endProcessesWith(word: string): Promise<void> {
  for (const id of await processesWith(word)) process.kill(id)
}
