import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'

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

/**
 * How long a process took to end, without the time in which its main thread was ready and waited for a processor: how busy the machine
 * is says nothing of the program.
 */
export async function timeEnd<Code>(pid: number, ended: Promise<Code>): Promise<{ code: Code; tookS: number }> {
  const readWaited = async () =>
    Number((await readFile(`/proc/${pid}/schedstat`, 'utf8').catch(() => '')).split(' ')[1] ?? waitedNs)
  const begunMs = performance.now()
  let waitedNs = 0
  waitedNs = await readWaited()
  const beforeNs = waitedNs
  let hasEnded = false
  const watching = (async () => {
    for (; !hasEnded; await pause(20)) waitedNs = await readWaited()
  })()
  const code = await ended
  const endedMs = performance.now()
  hasEnded = true
  await watching
  return { code, tookS: (endedMs - begunMs - (waitedNs - beforeNs) / 1e6) / 1000 }
}
