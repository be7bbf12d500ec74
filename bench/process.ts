import { readFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { type Filled, filledFolder } from './fill.ts'
import { median, repeat, timeMs } from './interleaved.ts'
import { authorization } from './list.ts'
import { answersPerS, rawRequest } from './load.ts'
import type { Row, Scope } from './row.ts'
import { startService } from './service.ts'

const VIDEOS = 10_000
const LIST = '/api/videos?page=1&limit=20'

export const PROCESS_ROWS: readonly Row[] = [
  {
    name: 'start',
    what: 'from the start of the process to the first page of 10 000 videos',
    unit: 's',
    aim: { oursAtMost: 0.5 },
    measure: async (scope) => {
      const filled = await filledFolder(scope, VIDEOS)
      await startToFirstAnswer(scope, filled)
      return { ours: median(await repeat(9, () => startToFirstAnswer(scope, filled))) }
    },
  },
  {
    name: 'memory-idle',
    what: 'anonymous memory, idle, 10 000 videos',
    unit: 'MB',
    aim: { oursAtMost: 90 },
    measure: async (scope) => ({ ours: await idleMb(scope, 'RssAnon') }),
  },
  {
    name: 'memory-idle-rss',
    what: 'resident memory, idle: with the pages of programs and files',
    unit: 'MB',
    aim: { oursAtMost: 160 },
    measure: async (scope) => ({ ours: await idleMb(scope, 'VmRSS') }),
  },
  {
    name: 'memory-load',
    what: 'anonymous memory, its height while 50 connections ask for lists',
    unit: 'MB',
    aim: { oursAtMost: 150 },
    measure: async (scope) => ({ ours: await loadedMb(scope, 'RssAnon') }),
  },
  {
    name: 'memory-load-rss',
    what: 'resident memory, its height while 50 connections ask for lists',
    unit: 'MB',
    aim: { oursAtMost: 240 },
    measure: async (scope) => ({ ours: await loadedMb(scope, 'VmRSS') }),
  },
]

async function startToFirstAnswer(scope: Scope, { dataDir, apiKey }: Filled): Promise<number> {
  let kill = async () => {}
  const ms = await timeMs(async () => {
    const service = await startService(scope, dataDir)
    kill = service.kill
    const answer = await fetch(`${service.url}${LIST}`, { headers: authorization(apiKey) })
    if (answer.status !== 200) throw new Error(`${LIST}: ${answer.status}`)
    await answer.text()
  })
  await kill()
  return ms / 1000
}

type Kind = 'RssAnon' | 'VmRSS'

async function idleMb(scope: Scope, kind: Kind): Promise<number> {
  const { dataDir } = await filledFolder(scope, VIDEOS)
  const { pid } = await startService(scope, dataDir)
  await pause(5_000)
  return memoryMb(pid, kind)
}

async function loadedMb(scope: Scope, kind: Kind): Promise<number> {
  const { dataDir, apiKey } = await filledFolder(scope, VIDEOS)
  const { pid, url } = await startService(scope, dataDir)
  const requests = [rawRequest('GET', LIST, authorization(apiKey))]
  let highestMb = 0
  const sampler = setInterval(async () => {
    highestMb = Math.max(highestMb, await memoryMb(pid, kind))
  }, 100)
  await answersPerS(scope, url, { requests, seconds: 10 }).finally(() => clearInterval(sampler))
  return Math.max(highestMb, await memoryMb(pid, kind))
}

/** Of the kernel's account of a process, in MB of a million bytes. */
async function memoryMb(pid: number, kind: Kind): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return (Number(new RegExp(`${kind}:\\s+(\\d+) kB`).exec(status)?.[1]) * 1024) / 1e6
}
