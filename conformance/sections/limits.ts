import { check, type Section } from '../check.ts'
import { Deviation, expectAnswer } from '../expect.ts'
import type { Answer } from '../http.ts'
import type { Installation } from '../installation.ts'
import { refused } from './errors.ts'

/** An operation of each budget. */
const BUDGETS: Record<string, (at: Installation) => Promise<Answer>> = {
  reads: (at) => at.api('GET', '/videos'),
  writes: (at) => at.api('DELETE', '/videos?videos='),
  otp: async (at) => at.api('POST', `/videos/${await at.sharedEmptyVideo()}/otp`),
  uploads: (at) => at.api('PUT', '/videos'),
}

/** Refused for its scheme, so that nothing is imported. */
const REFUSED_IMPORT = { url: 'ftp://example.org/video.mp4' }

const rateLimitHeaders = (budget: string) => ({
  'ratelimit-policy': new RegExp(`^"${budget}";q=[1-9][0-9]*;w=60$`),
  ratelimit: new RegExp(`^"${budget}";r=[0-9]+;t=[0-9]+$`),
})

export const limits: Section = {
  section: 9,
  title: 'Limits',
  checks: [
    ...Object.entries(BUDGETS).map(([budget, ask]) =>
      check(`an answer tells the budget of ${budget}: RateLimit-Policy and RateLimit`, async (at) => {
        const answer = await ask(at)
        expectAnswer(answer, { status: answer.status, headers: rateLimitHeaders(budget) })
      }),
    ),
    check('the earlier interface tells them too', async (at) => {
      expectAnswer(await at.v2('/videos'), { status: 200, headers: rateLimitHeaders('reads') })
      expectAnswer(await at.v2(`/otp?video=${await at.sharedEmptyVideo()}`), { status: 200, headers: rateLimitHeaders('otp') })
    }),
    check('imports count as writes, in both interfaces', async (at) => {
      const current = await at.api('PUT', '/videos/importUrl', { json: REFUSED_IMPORT })
      expectAnswer(current, { status: 400, headers: rateLimitHeaders('writes') })
      expectAnswer(await at.v2('/importUrl?url=ftp%3A%2F%2Fexample.org'), { status: 400, headers: rateLimitHeaders('writes') })
    }),
    check('refusals tell them too', async (at) => {
      expectAnswer(await at.api('GET', '/videos', { key: null }), { status: 401, headers: rateLimitHeaders('unauthenticated') })
      expectAnswer(await at.api('GET', '/nothing'), { status: 404, headers: rateLimitHeaders('reads') })
    }),
    check('each call takes one', async (at) => {
      const remaining = ({ headers }: Answer) => Number(/r=(\d+)/.exec(headers.ratelimit?.toString() ?? '')?.[1])
      const [first, second] = [remaining(await at.api('GET', '/videos')), remaining(await at.api('GET', '/videos'))]
      // Of a window of a minute some may have come back in between.
      if (!(second >= first - 1)) throw new Deviation(`RateLimit: expected at least ${first - 1} left, got ${second}`)
    }),
    check(
      'past the limit: 429 with Retry-After within the minute',
      async (at) => {
        const answer = await at.exceedUploads()
        expectAnswer(answer, {
          ...refused(429),
          headers: { 'retry-after': /^([1-9]|[1-5][0-9]|60)$/, ...rateLimitHeaders('uploads') },
        })
      },
      'exceed',
    ),
  ],
}
