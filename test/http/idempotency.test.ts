import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Owner } from '../client.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { readRows } from '../rows.ts'

// A call under an Idempotency-Key may be sent as often as a client likes: it has one effect, and one answer.

let reelgate: Reelgate & { remove(): Promise<void> }
let ann: Owner
let ben: Owner
beforeAll(async () => {
  reelgate = await startSharedReelgate()
  ann = reelgate.owner
  ben = await reelgate.newOwner('Ben')
})
afterAll(() => reelgate.remove())

type Operation = { rows: string; send(owner: Owner, key: string, word: string): Promise<Response> }

let video: string
beforeAll(async () => {
  video = (await ann.credentials('A video')).videoId
})

const keyed = (key: string) => ({ headers: { 'Idempotency-Key': key } })
const v2 = (owner: Owner, path: string, key: string, fields: Record<string, string>) =>
  fetch(`${owner.url}/v2${path}`, {
    method: 'POST',
    body: new URLSearchParams({ clientSecretKey: owner.apiKey, ...fields }),
    ...keyed(key),
  })

/** Each that takes the header: the table that its effect adds a row to, and the call; `word` makes it another one. */
const OPERATIONS: Record<string, Operation> = {
  'PUT /api/videos': {
    rows: 'video',
    send: (owner, key, word) => owner.call('PUT', `/api/videos?title=${word}`, keyed(key)),
  },
  'POST /api/videos/{id}/otp': {
    rows: 'otp',
    send: (owner, key, word) => owner.call('POST', `/api/videos/${video}/otp`, { body: { userId: word }, ...keyed(key) }),
  },
  'PUT /api/videos/importUrl': {
    rows: 'video',
    send: (owner, key, word) =>
      owner.call('PUT', '/api/videos/importUrl', { body: { url: `https://host.invalid/${word}.mp4` }, ...keyed(key) }),
  },
  'POST /v2/uploadPolicy': {
    rows: 'video',
    send: (owner, key, word) => v2(owner, '/uploadPolicy', key, { title: word }),
  },
  'POST /v2/importUrl': {
    rows: 'video',
    send: (owner, key, word) => v2(owner, `/importUrl?url=https://host.invalid/${word}.mp4`, key, {}),
  },
  'POST /api/hooks': {
    rows: 'webhook',
    send: (owner, key, word) =>
      owner.call('POST', '/api/hooks', {
        body: { type: 'http', value: `https://host.invalid/${word}`, event: 'video:ready', status: 1 },
        ...keyed(key),
      }),
  },
  'POST /v2/otp': { rows: 'otp', send: (owner, key, word) => v2(owner, `/otp?video=${video}`, key, { userId: word }) },
  'POST /v2/otp?type=xml': {
    rows: 'otp',
    send: (owner, key, word) => v2(owner, `/otp?video=${video}&type=xml`, key, { userId: word }),
  },
}

const countOf = (table: string) => readRows<{ n: number }>(reelgate, `select count(*) as n from ${table}`)[0]?.n ?? 0

async function answerOf(response: Response) {
  const { status, headers } = response
  const bytes = Buffer.from(await response.arrayBuffer()).toString('latin1')
  return { status, type: headers.get('Content-Type'), bytes, replayed: headers.get('Idempotency-Replayed') }
}

describe.each(Object.entries(OPERATIONS))('%s', (_, { rows, send }) => {
  test('sent again under its key has no second effect and gets the same bytes', async () => {
    const key = randomUUID()
    const before = countOf(rows)
    const first = await answerOf(await send(ann, key, 'one'))
    expect(first).toMatchObject({ status: 200, replayed: null })
    for (const _ of [1, 2]) expect(await answerOf(await send(ann, key, 'one'))).toEqual({ ...first, replayed: 'true' })
    expect(countOf(rows)).toBe(before + 1)
  })

  test('twenty concurrent requests under one key have one effect and one response', async () => {
    const key = randomUUID()
    const before = countOf(rows)
    const answers = await Promise.all(Array.from({ length: 20 }, async () => answerOf(await send(ann, key, 'many'))))
    expect(new Set(answers.map(({ status, bytes }) => `${status} ${bytes}`)).size).toBe(1)
    expect(answers.filter(({ replayed }) => replayed === null)).toHaveLength(1)
    expect(countOf(rows)).toBe(before + 1)
  })

  test('another request under a used key is 409 and has no effect', async () => {
    const key = randomUUID()
    await send(ann, key, 'one')
    const before = countOf(rows)
    const refused = await answerOf(await send(ann, key, 'two'))
    expect(refused).toMatchObject({ status: 409, bytes: expect.stringContaining('Idempotency-Key') })
    expect(countOf(rows)).toBe(before)
  })

  test('a key that is no line of 1 to 255 visible characters is 400 and has no effect', async () => {
    const before = countOf(rows)
    for (const key of ['', 'a key', 'k'.repeat(256), 'schlüssel']) expect((await send(ann, key, 'one')).status, key).toBe(400)
    expect(countOf(rows)).toBe(before)
    expect((await send(ann, `"${randomUUID().padEnd(253, 'k')}"`, 'one')).status).toBe(200)
  })
})

test('a key belongs to its account: another’s same key is another call', async () => {
  const key = randomUUID()
  const { send } = OPERATIONS['PUT /api/videos'] as Operation
  const anns = await answerOf(await send(ann, key, 'one'))
  const bens = await answerOf(await send(ben, key, 'one'))
  expect(bens).toMatchObject({ status: 200, replayed: null })
  expect(bens.bytes).not.toBe(anns.bytes)
  expect(await answerOf(await send(ann, key, 'one'))).toEqual({ ...anns, replayed: 'true' })
})

test('one key for two operations is 409 for the second', async () => {
  const key = randomUUID()
  expect((await OPERATIONS['PUT /api/videos']?.send(ann, key, 'one'))?.status).toBe(200)
  expect((await OPERATIONS['POST /v2/otp']?.send(ann, key, 'one'))?.status).toBe(409)
})

test('what was refused is not kept: corrected, the request may use its key', async () => {
  const key = randomUUID()
  const ask = (videoId: string) => ann.call('POST', `/api/videos/${videoId}/otp`, { body: {}, ...keyed(key) })
  expect((await ask('0'.repeat(32))).status).toBe(404)
  expect((await ask(video)).status).toBe(200)
  expect((await ask('0'.repeat(32))).status).toBe(409)
})

test('an answer is the same after a restart', async () => {
  const key = randomUUID()
  const { send } = OPERATIONS['POST /api/videos/{id}/otp'] as Operation
  const first = await answerOf(await send(ann, key, 'one'))
  await reelgate.stop()
  await reelgate.restart()
  expect(await answerOf(await send(ann, key, 'one'))).toEqual({ ...first, replayed: 'true' })
})
