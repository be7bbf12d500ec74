import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Client } from 'undici'
import { copyFilledFolder, ensureFilled, type FilledFolder, HITS } from './fill.ts'
import { measureInterleaved, percentile, repeat, timeMs } from './interleaved.ts'
import { formatRequest, measureResponsesPerS } from './load.ts'
import { SEARCH_WORD } from './random-words.ts'
import type { Row, Scope } from './row.ts'
import { type ListeningProcess, startPeer, startService } from './service.ts'

const VIDEOS = 10_000
const MANY = 1_000_000
const PAIRS = 5
export const FIRST_PAGE = '/api/videos?page=1&limit=20'
/** Rows 9 001 to 9 020. */
const DEEP_PAGE = '/api/videos?page=451&limit=20'

export const LIST_ROWS: readonly Row[] = [
  {
    name: 'list',
    what: '20 of 10 000 videos with their count; peer: Fastify, key in memory, constant JSON of that size',
    unit: 'per s',
    aim: { ratioAtLeast: 0.5 },
    measure: (scope) => compareWithConstant(scope, [FIRST_PAGE]),
  },
  {
    name: 'search',
    what: '20 of 2 000 hits in 10 000 videos, no two requests alike; peer: as above',
    unit: 'per s',
    aim: { ratioAtLeast: 0.05 },
    measure: (scope) => compareWithConstant(scope, uniqueQueries(searches())),
  },
  {
    name: 'deep-page',
    what: 'page at row 9 000; peer: page 1, nothing cached, after a change',
    unit: 'ms',
    aim: { ratioAtMost: 4 },
    measure: async (scope) => {
      const filled = await copyFilledFolder(scope, VIDEOS)
      const owner = await createSequentialClient(scope, filled)
      return measureInterleaved(
        100,
        () => owner.uncachedMs(DEEP_PAGE),
        () => owner.uncachedMs(FIRST_PAGE),
      )
    },
  },
  {
    name: 'list-million',
    what: '20 of 1 000 000 videos with their count; peer: own 10 000; nothing cached, after a change',
    unit: 'ms',
    aim: { ratioAtMost: 1.2 },
    prepare: () => ensureFilled(MANY),
    measure: async (scope) => {
      const many = await createSequentialClient(scope, await copyFilledFolder(scope, MANY))
      const few = await createSequentialClient(scope, await copyFilledFolder(scope, VIDEOS))
      return measureInterleaved(
        100,
        () => many.uncachedMs(FIRST_PAGE),
        () => few.uncachedMs(FIRST_PAGE),
      )
    },
  },
  {
    name: 'search-million',
    what: '20 of 2 000 hits in 1 000 000 videos, 99 of 100 responses within',
    unit: 'ms',
    aim: { oursAtMost: 60 },
    prepare: () => ensureFilled(MANY),
    measure: async (scope) => {
      const owner = await createSequentialClient(scope, await copyFilledFolder(scope, MANY))
      const paths = searches().values()
      const ours = await repeat(300, () => owner.uncachedMs(paths.next().value ?? ''))
      return { ours: percentile(ours, 99) }
    },
  },
]

/** More URLs than responses are cached, so that none is served from the cache; the service ignores the extra parameter. */
export function uniqueQueries(paths: readonly string[]): string[] {
  return Array.from({ length: 20_000 }, (_, time) => `${paths[time % paths.length]}&n=${time}`)
}

/**
 * Searches that all find the same titles: different parts of the word in different case, so that each has its own cache entry.
 */
export function searches(): string[] {
  const parts: string[] = []
  for (let length = 5; length <= SEARCH_WORD.length; length++)
    for (let start = 0; start + length <= SEARCH_WORD.length; start++) parts.push(SEARCH_WORD.slice(start, start + length))
  const spellings = Array.from(
    { length: 32 },
    (_, bits) => (part: string) =>
      [...part].map((letter, index) => ((bits >> (index % 5)) & 1 ? letter.toUpperCase() : letter)).join(''),
  )
  return spellings.flatMap((spell) => parts.map((part) => `/api/videos?page=1&limit=20&q=${spell(part)}`))
}

export async function compareWithConstant(scope: Scope, paths: readonly string[], videos = VIDEOS) {
  const filled = await copyFilledFolder(scope, videos)
  const service = await startService(scope, filled.dataDir)
  const peer = await startConstantPeer(scope, filled.apiKey, await getText(service, filled.apiKey, paths[0] ?? '', videos))
  const requests = paths.map((path) => formatRequest('GET', path, authorization(filled.apiKey)))
  const measure = ({ url }: ListeningProcess) => measureResponsesPerS(scope, url, { requests })
  await Promise.all([service, peer].map(measure)) // warm up both
  return measureInterleaved(
    PAIRS,
    () => measure(service),
    () => measure(peer),
  )
}

/** @param text its response to every request */
export async function startConstantPeer(scope: Scope, apiKey: string, text: string): Promise<ListeningProcess> {
  const file = join(scope.folder, 'response.json')
  await writeFile(file, text)
  return startPeer(scope, 'constant.ts', apiKey, file)
}

export function authorization(apiKey: string): Record<string, string> {
  return { Authorization: `Apisecret ${apiKey}` }
}

async function getText({ url }: ListeningProcess, apiKey: string, path: string, videos: number): Promise<string> {
  const response = await fetch(`${url}${path}`, { headers: authorization(apiKey) })
  const text = await response.text()
  const { count }: { count: number } = JSON.parse(text)
  if (count !== (path.includes('q=') ? HITS : videos)) throw new Error(`${path} counts ${count} videos`)
  return text
}

/** A client that sends one request after the other. */
export async function createSequentialClient(scope: Scope, filled: FilledFolder, env: Record<string, string> = {}) {
  const service = await startService(scope, filled.dataDir, env)
  const client = new Client(service.url)
  scope.defer(() => client.close())
  const headers = authorization(filled.apiKey)

  async function send(method: 'GET' | 'PUT' | 'POST', path: string, form?: string) {
    const type = form === undefined ? {} : { 'Content-Type': 'application/x-www-form-urlencoded' }
    const response = await client.request({ method, path, headers: { ...headers, ...type }, body: form ?? null })
    await response.body.dump({ limit: Number.MAX_SAFE_INTEGER })
    if (response.statusCode !== 200) throw new Error(`${method} ${path}: ${response.statusCode}`)
    return response
  }

  /** The time of a response that cannot be cached, because a video was added before it. A form is sent by POST. */
  async function uncachedMs(path: string, form?: string): Promise<number> {
    await send('PUT', '/api/videos?title=Another%20video')
    await pause(1) // so that work after the change is not measured
    return timeMs(() => send(form === undefined ? 'GET' : 'POST', path, form))
  }

  for (let time = 0; time < 50; time++) await uncachedMs(FIRST_PAGE) // warm up
  return { uncachedMs, service }
}
