import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Client } from 'undici'
import { type Filled, filledFolder, HITS, makeFilled } from './fill.ts'
import { measureInterleaved, percentile, repeat, timeMs } from './interleaved.ts'
import { answersPerS, rawRequest } from './load.ts'
import { MARK } from './random-words.ts'
import type { Row, Scope } from './row.ts'
import { type Listening, startPeer, startService } from './service.ts'

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
    measure: (scope) => againstConstant(scope, [FIRST_PAGE]),
  },
  {
    name: 'search',
    what: '20 of 2 000 hits in 10 000 videos, no two questions alike; peer: as above',
    unit: 'per s',
    aim: { ratioAtLeast: 0.05 },
    measure: (scope) => againstConstant(scope, uniqueQueries(searches())),
  },
  {
    name: 'deep-page',
    what: 'page at row 9 000; peer: page 1, each read afresh after a change',
    unit: 'ms',
    aim: { ratioAtMost: 4 },
    measure: async (scope) => {
      const filled = await filledFolder(scope, VIDEOS)
      const owner = await askingOwner(scope, filled)
      return measureInterleaved(
        100,
        () => owner.freshMs(DEEP_PAGE),
        () => owner.freshMs(FIRST_PAGE),
      )
    },
  },
  {
    name: 'list-million',
    what: '20 of 1 000 000 videos with their count; peer: own 10 000; each read afresh after a change',
    unit: 'ms',
    aim: { ratioAtMost: 1.2 },
    prepare: () => makeFilled(MANY),
    measure: async (scope) => {
      const many = await askingOwner(scope, await filledFolder(scope, MANY))
      const few = await askingOwner(scope, await filledFolder(scope, VIDEOS))
      return measureInterleaved(
        100,
        () => many.freshMs(FIRST_PAGE),
        () => few.freshMs(FIRST_PAGE),
      )
    },
  },
  {
    name: 'search-million',
    what: '20 of 2 000 hits in 1 000 000 videos, 99 of 100 are answered within',
    unit: 'ms',
    aim: { oursAtMost: 60 },
    prepare: () => makeFilled(MANY),
    measure: async (scope) => {
      const owner = await askingOwner(scope, await filledFolder(scope, MANY))
      const questions = searches().values()
      const ours = await repeat(300, () => owner.freshMs(questions.next().value ?? ''))
      return { ours: percentile(ours, 99) }
    },
  },
]

/** More addresses than answers are kept, so that each is read afresh; what the service does not know in a query it ignores. */
export function uniqueQueries(paths: readonly string[]): string[] {
  return Array.from({ length: 20_000 }, (_, time) => `${paths[time % paths.length]}&asked=${time}`)
}

/** Searches that all find the same titles: any part of the word, in any case, so that no answer is the answer to another. */
export function searches(): string[] {
  const parts: string[] = []
  for (let length = 5; length <= MARK.length; length++)
    for (let start = 0; start + length <= MARK.length; start++) parts.push(MARK.slice(start, start + length))
  const spellings = Array.from(
    { length: 32 },
    (_, bits) => (part: string) =>
      [...part].map((letter, index) => ((bits >> (index % 5)) & 1 ? letter.toUpperCase() : letter)).join(''),
  )
  return spellings.flatMap((spell) => parts.map((part) => `/api/videos?page=1&limit=20&q=${spell(part)}`))
}

export async function againstConstant(scope: Scope, paths: readonly string[], videos = VIDEOS) {
  const filled = await filledFolder(scope, videos)
  const service = await startService(scope, filled.dataDir)
  const peer = await startConstantPeer(scope, filled.apiKey, await getText(service, filled.apiKey, paths[0] ?? '', videos))
  const requests = paths.map((path) => rawRequest('GET', path, authorization(filled.apiKey)))
  const answers = ({ url }: Listening) => answersPerS(scope, url, { requests })
  await Promise.all([service, peer].map(answers)) // both warm
  return measureInterleaved(
    PAIRS,
    () => answers(service),
    () => answers(peer),
  )
}

/** @param answer what it says to everything */
export async function startConstantPeer(scope: Scope, apiKey: string, answer: string): Promise<Listening> {
  const file = join(scope.folder, 'answer.json')
  await writeFile(file, answer)
  return startPeer(scope, 'constant.ts', apiKey, file)
}

export function authorization(apiKey: string): Record<string, string> {
  return { Authorization: `Apisecret ${apiKey}` }
}

async function getText({ url }: Listening, apiKey: string, path: string, videos: number): Promise<string> {
  const response = await fetch(`${url}${path}`, { headers: authorization(apiKey) })
  const text = await response.text()
  const { count }: { count: number } = JSON.parse(text)
  if (count !== (path.includes('q=') ? HITS : videos)) throw new Error(`${path} counts ${count} videos`)
  return text
}

/** An owner who asks one thing after the other. */
export async function askingOwner(scope: Scope, filled: Filled, env: Record<string, string> = {}) {
  const service = await startService(scope, filled.dataDir, env)
  const client = new Client(service.url)
  scope.defer(() => client.close())
  const headers = authorization(filled.apiKey)

  async function ask(method: 'GET' | 'PUT' | 'POST', path: string, form?: string) {
    const type = form === undefined ? {} : { 'Content-Type': 'application/x-www-form-urlencoded' }
    const answer = await client.request({ method, path, headers: { ...headers, ...type }, body: form ?? null })
    await answer.body.dump({ limit: Number.MAX_SAFE_INTEGER })
    if (answer.statusCode !== 200) throw new Error(`${method} ${path}: ${answer.statusCode}`)
    return answer
  }

  /** The time of an answer that cannot have been kept: a video was added since. A form is posted. */
  async function freshMs(path: string, form?: string): Promise<number> {
    await ask('PUT', '/api/videos?title=Another%20video')
    await pause(1) // what the change leaves to do is not this answer's
    return timeMs(() => ask(form === undefined ? 'GET' : 'POST', path, form))
  }

  for (let time = 0; time < 50; time++) await freshMs(FIRST_PAGE) // warm
  return { freshMs, service }
}
