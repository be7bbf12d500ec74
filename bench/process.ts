import { readFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { copyFilledFolder, type FilledFolder } from './fill.ts'
import { median, repeat, timeMs } from './interleaved.ts'
import { authorization } from './list.ts'
import { formatRequest, measureResponsesPerS } from './load.ts'
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
      const filled = await copyFilledFolder(scope, VIDEOS)
      await measureStartS(scope, filled)
      return { ours: median(await repeat(9, () => measureStartS(scope, filled))) }
    },
  },
  {
    name: 'memory-idle',
    what: 'anonymous memory, idle, 10 000 videos',
    unit: 'MB',
    aim: { oursAtMost: 90 },
    measure: async (scope) => ({ ours: await measureIdleMb(scope, 'RssAnon') }),
  },
  {
    name: 'memory-idle-rss',
    what: 'resident memory, idle: including pages of programs and files',
    unit: 'MB',
    aim: { oursAtMost: 160 },
    measure: async (scope) => ({ ours: await measureIdleMb(scope, 'VmRSS') }),
  },
  {
    name: 'memory-load',
    what: 'anonymous memory, its maximum while 50 connections request lists',
    unit: 'MB',
    aim: { oursAtMost: 150 },
    measure: async (scope) => ({ ours: await measureLoadedMb(scope, 'RssAnon') }),
  },
  {
    name: 'memory-load-rss',
    what: 'resident memory, its maximum while 50 connections request lists',
    unit: 'MB',
    aim: { oursAtMost: 240 },
    measure: async (scope) => ({ ours: await measureLoadedMb(scope, 'VmRSS') }),
  },
]

async function measureStartS(scope: Scope, { dataDir, apiKey }: FilledFolder): Promise<number> {
  let kill = async () => {}
  const ms = await timeMs(async () => {
    const service = await startService(scope, dataDir)
    kill = service.kill
    const response = await fetch(`${service.url}${LIST}`, { headers: authorization(apiKey) })
    if (response.status !== 200) throw new Error(`${LIST}: ${response.status}`)
    await response.text()
  })
  await kill()
  return ms / 1000
}

type MemoryKind = 'RssAnon' | 'VmRSS'

async function measureIdleMb(scope: Scope, kind: MemoryKind): Promise<number> {
  const { dataDir } = await copyFilledFolder(scope, VIDEOS)
  const { pid } = await startService(scope, dataDir)
  await pause(5_000)
  return memoryMb(pid, kind)
}

async function measureLoadedMb(scope: Scope, kind: MemoryKind): Promise<number> {
  const { dataDir, apiKey } = await copyFilledFolder(scope, VIDEOS)
  const { pid, url } = await startService(scope, dataDir)
  const requests = [formatRequest('GET', LIST, authorization(apiKey))]
  return measureMaxMb(pid, kind, () => measureResponsesPerS(scope, url, { requests, seconds: 10 }))
}

/** The most memory that a process has during some work, in MB. */
export async function measureMaxMb(pid: number, kind: MemoryKind, work: () => Promise<unknown>): Promise<number> {
  let maxMb = 0
  const sampler = setInterval(async () => {
    maxMb = Math.max(maxMb, await memoryMb(pid, kind))
  }, 100)
  await work().finally(() => clearInterval(sampler))
  return Math.max(maxMb, await memoryMb(pid, kind))
}

/** Memory of a process as the kernel counts it, in MB of a million bytes. */
async function memoryMb(pid: number, kind: MemoryKind): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return (Number(new RegExp(`${kind}:\\s+(\\d+) kB`).exec(status)?.[1]) * 1024) / 1e6
}
