import { Client } from 'undici'
import { copyFilledFolder, FOLDER } from './fill.ts'
import { measureInterleaved, percentile, repeat, timeMs } from './interleaved.ts'
import { authorization, compareWithConstant, createSequentialClient, FIRST_PAGE, searches, uniqueQueries } from './list.ts'
import type { Row, Scope } from './row.ts'
import { startService } from './service.ts'

// The library of a school, and a job that reads all of it.

const VIDEOS = 50_000
const TIMES = 100
const TAG_PAGE = '/api/videos?page=1&limit=20&tag=course%203'
const FOLDER_PAGE = `/api/videos?page=1&limit=20&folderId=${FOLDER}`

export const LIBRARY_ROWS: readonly Row[] = [
  {
    name: 'list-50000',
    what: '20 of 50 000 videos with their count; peer: Fastify, key in memory, constant JSON of that size',
    unit: 'per s',
    aim: { ratioAtLeast: 0.5 },
    measure: (scope) => compareWithConstant(scope, [FIRST_PAGE], VIDEOS),
  },
  {
    name: 'search-50000',
    what: '20 of 2 000 hits in 50 000 videos, no two requests alike; peer: as above',
    unit: 'per s',
    aim: { ratioAtLeast: 0.05 },
    measure: (scope) => compareWithConstant(scope, uniqueQueries(searches()), VIDEOS),
  },
  {
    name: 'search-v2-50000',
    what: '20 of 2 000 hits in 50 000 videos by search[title] of v2; peer: by q, nothing cached, after a change',
    unit: 'ms',
    aim: { ratioAtMost: 1.2 },
    measure: async (scope) => {
      const filled = await copyFilledFolder(scope, VIDEOS)
      const { uncachedMs } = await createSequentialClient(scope, filled)
      const questions = searches().map((path) => ({ path, text: new URLSearchParams(path).get('q') ?? '' }))
      const [ours, peers] = [questions.values(), questions.values()]
      const form = `clientSecretKey=${filled.apiKey}`
      return measureInterleaved(
        TIMES,
        () => uncachedMs(`/v2/videos?limit=20&search[title]=${ours.next().value?.text}`, form),
        () => uncachedMs(peers.next().value?.path ?? ''),
      )
    },
  },
  {
    name: 'tag-50000',
    what: 'page 1 of a tag in 50 000 videos; peer: page 1 of all, nothing cached, after a change',
    unit: 'ms',
    aim: { ratioAtMost: 1.2 },
    measure: (scope) => compareWithFirstPage(scope, TAG_PAGE),
  },
  {
    name: 'folder-50000',
    what: 'page 1 of a folder of 50 000 videos; peer: page 1 of all, nothing cached, after a change',
    unit: 'ms',
    aim: { ratioAtMost: 1.2 },
    measure: (scope) => compareWithFirstPage(scope, FOLDER_PAGE),
  },
  {
    name: 'folder-open',
    what: 'a folder of 10 000 folders and 50 000 videos, 99 of 100 responses within',
    unit: 'ms',
    aim: { oursAtMost: 100 },
    measure: async (scope) => {
      const { uncachedMs } = await createSequentialClient(scope, await copyFilledFolder(scope, VIDEOS))
      return { ours: percentile(await repeat(TIMES, () => uncachedMs(`/api/videos/folders/${FOLDER}`)), 99) }
    },
  },
  {
    name: 'otp-paging',
    what: 'OTPs one by one, 99 of 100, while a job pages through 50 000 videos; peer: without the job',
    unit: 'ms',
    aim: { ratioAtMost: 3 },
    measure: compareOtpsDuringJob,
  },
]

async function compareWithFirstPage(scope: Scope, path: string) {
  const { uncachedMs } = await createSequentialClient(scope, await copyFilledFolder(scope, VIDEOS))
  return measureInterleaved(
    TIMES,
    () => uncachedMs(path),
    () => uncachedMs(FIRST_PAGE),
  )
}

const OTPS = 1_000
const PAIRS = 5

async function compareOtpsDuringJob(scope: Scope) {
  const { dataDir, apiKey } = await copyFilledFolder(scope, VIDEOS)
  const service = await startService(scope, dataDir)
  const headers = { ...authorization(apiKey), 'Content-Type': 'application/json' }
  const viewers = new Client(service.url)
  const job = new Client(service.url)
  scope.defer(() => Promise.all([viewers.close(), job.close()]))

  const first = await viewers.request({ method: 'GET', path: FIRST_PAGE, headers })
  const { rows } = (await first.body.json()) as { rows: { id: string }[] }
  async function issue(): Promise<void> {
    const path = `/api/videos/${rows[0]?.id}/otp`
    const { statusCode, body } = await viewers.request({ method: 'POST', path, headers, body: '{"ttl":300}' })
    await body.text()
    if (statusCode !== 200) throw new Error(`issuing an OTP failed: ${statusCode}`)
  }

  /** Reads page after page, and starts over after the last. */
  async function readPages(signal: AbortSignal): Promise<void> {
    let path = '/api/videos?limit=40'
    while (!signal.aborted) {
      const { statusCode, headers: answered, body } = await job.request({ method: 'GET', path, headers })
      await body.dump({ limit: Number.MAX_SAFE_INTEGER })
      if (statusCode !== 200) throw new Error(`${path}: ${statusCode}`)
      path = /^<http:\/\/[^/]+([^>]+)>/.exec(String(answered.link ?? ''))?.[1] ?? '/api/videos?limit=40'
    }
  }

  const p99Ms = async () => percentile(await repeat(OTPS, () => timeMs(issue)), 99)
  async function p99DuringJobMs(): Promise<number> {
    const stopping = new AbortController()
    const [p99] = await Promise.all([p99Ms().finally(() => stopping.abort()), readPages(stopping.signal)])
    return p99
  }
  await p99Ms() // warm
  return measureInterleaved(PAIRS, p99DuringJobMs, p99Ms)
}
