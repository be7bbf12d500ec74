import { readFile } from 'node:fs/promises'

/** What a process holds in memory of its own, without the files that are mapped into it. */
export async function anonymousMiB(pid: number): Promise<number> {
  return Number(/RssAnon:\s+(\d+) kB/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
}
