import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { sendRaw } from '../raw-http.ts'

// What takes linear time is answered; what takes quadratic time runs into the timeout of the test.

let reelgate: Reelgate & { remove(): Promise<void> }
beforeAll(async () => {
  reelgate = await startSharedReelgate({ env: { REELGATE_LIMITS: 'off' } })
})
afterAll(() => reelgate.remove())

const SIZE = 256 * 1024 - 100
const FORM = 'Content-Type: application/x-www-form-urlencoded'
const JSON_TYPE = 'Content-Type: application/json'

const BODIES = {
  'percent-encoded JSON that is followed by spaces': { type: FORM, body: `%7b${' '.repeat(SIZE)}x&` },
  'spaces before no JSON': { type: FORM, body: `${' '.repeat(SIZE)}x` },
  'escaped quotes in a text without an end': { type: JSON_TYPE, body: `{"a":"${'\\"'.repeat(SIZE / 2)}` },
  'quotes in a text without an end': { type: JSON_TYPE, body: '\\"'.repeat(SIZE / 2) },
  'opening brackets alone': { type: JSON_TYPE, body: '['.repeat(SIZE) },
} as const

test.each(Object.entries(BODIES))(
  'X17: one body without a key, of %s, is refused in linear time',
  async (_what, { type, body }) => {
    const console = [type, 'Reelgate-Console: 1']
    for (const line of ['POST /v2/otp', 'POST /v2/tags/add', 'POST /v2/nothing', 'POST /api/videos', 'POST /nothing'])
      expect((await sendRaw(reelgate.url, line, [type], body)).status).toBeOneOf([400, 401, 404, 405])
    expect((await sendRaw(reelgate.url, 'POST /console/api/sign-in', console, body)).status).toBeOneOf([400, 413])
  },
)
