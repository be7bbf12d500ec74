import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Owner } from '../client.ts'
import { type Reelgate, startSharedReelgate } from '../reelgate.ts'
import { changeRows } from '../rows.ts'
import { openSharedWorld, type World } from '../ssrf/network-namespace.ts'
import { type DeliveryBody, webhooksOf } from './receiver.ts'

// Webhooks of owners who mean the server harm: the server as it is shipped, in an internet of the test's own, and canaries where none may reach.

let world: World & { end(): Promise<void> }
let reelgate: Reelgate & { remove(): Promise<void> }
let canaries: { received(): string[] }
const taken: string[] = []

/** What represents this machine and its network; the server's own port is one of them. */
const INSIDE = ['127.0.0.1', '10.0.0.1', '192.168.1.1', '169.254.169.254', '100.100.100.200', '::1', 'fd00::1', 'fd00:ec2::254']

beforeAll(async () => {
  world = await openSharedWorld()
  canaries = await world.canaries(...INSIDE, '127.0.0.1#22', '127.0.0.1#6379', '8.8.8.8#25')
  await world.site('8.8.8.8', (request, response) => {
    taken.push(request.url ?? '')
    response.writeHead(204).end()
  })
  world.names.set('good.example', ['8.8.8.8'])
  world.names.set('inside.example', ['127.0.0.1'])
  world.names.set('six-inside.example', ['::1', 'fd00::1'])
  world.names.set('mapped.example', ['::ffff:7f00:1'])
  world.names.set('mixed.example', ['127.0.0.1', '8.8.8.8'])
  reelgate = await startSharedReelgate(await world.around())
})
afterAll(async () => {
  await reelgate.remove()
  await world.end()
})

/** The S table, as far as it is about addresses. */
const HOSTILE = [
  ...['http://127.0.0.1/', 'http://2130706433/', 'http://0177.0.0.1/', 'http://0x7f.1/', 'http://127.1/', 'http://0/'],
  ...['http://[::1]/', 'http://[::]/', 'http://[::ffff:127.0.0.1]/', 'http://[::ffff:7f00:1]/', 'http://[64:ff9b::7f00:1]/'],
  ...['http://[2002:7f00:1::]/', 'http://[fe80::1]/', 'http://[fd00::1]/', 'http://[fd00:ec2::254]/'],
  ...[
    'http://１２７.０.０.１/',
    'http://①②⑦.⓪.⓪.①/',
    'http://127.0.0\u00ad.1/',
    'http://localhost/',
    'http://LOCALHOST./',
    'http://a.localhost/',
  ],
  ...['http://169.254.169.254/latest/meta-data/', 'http://100.100.100.200/', 'http://10.0.0.1/', 'https://192.168.1.1/'],
  ...['http://a@127.0.0.1#@good.example/', 'http://good.example%2f@127.0.0.1', 'http://user:secret@good.example/'],
  ...['file:///etc/passwd', 'ftp://good.example/', 'data:,x', 'gopher://good.example/', 'javascript:alert(1)', 'concat:a|b'],
  ...['http://127.0.0.1:22/', 'http://8.8.8.8:25/', 'http://127.0.0.1:6379/', 'http://good.example:8080/'],
  ...[`http://good.example/${'a'.repeat(100_000)}`, `http://${'a.'.repeat(150)}example/`, `http://${'a'.repeat(64)}.example/`],
]
/** Names that lead inside, or seem to: seen when they are looked up. */
const INSIDE_NAMES = ['http://inside.example/', 'https://inside.example/', 'http://six-inside.example/', 'http://mapped.example/']

test.each([...HOSTILE, ...INSIDE_NAMES].map((value) => [value.slice(0, 60), value]))(
  'W01: a webhook for %s is refused when it is made',
  async (_, value) => {
    const answer = await reelgate.owner.call('POST', '/api/hooks', { body: { value } })
    expect(answer.status).toBe(400)
    const { message }: { message: string } = (await answer.json()) as { message: string }
    expect(message).not.toContain('secret')
    expect(canaries.received()).toEqual([])
  },
)

test('W01: every one of those addresses is refused when a delivery is due, too, whatever the row says', async () => {
  const urls = [...HOSTILE, ...INSIDE_NAMES].filter((url) => URL.canParse(url) && url.length < 10_000)
  const owners: { owner: Owner; uuids: string[] }[] = []
  for (let first = 0; first < urls.length; first += 20) {
    const owner = await reelgate.newOwner(`plants ${first}`)
    const uuids: string[] = []
    for (const _ of urls.slice(first, first + 20))
      uuids.push((await webhooksOf(owner).create('http://good.example/planted')).uuid)
    owners.push({ owner, uuids })
  }
  await reelgate.stop()
  for (const [n, uuid] of owners.flatMap(({ uuids }) => uuids).entries())
    changeRows(reelgate, 'update webhook set url = ? where id = ?', new URL(urls[n] ?? '').href, uuid)
  await reelgate.restart()
  for (const { owner, uuids } of owners) {
    await owner.delete([(await owner.credentials('A video')).videoId])
    for (const uuid of uuids) {
      const { problem } = await untilTried(owner, uuid)
      expect(problem).toMatch(/is not allowed|not on the public internet|Write a whole address/)
    }
  }
  expect(canaries.received()).toEqual([])
  expect(taken.filter((path) => path.includes('planted'))).toEqual([])
})

test('W01, S08: a name that resolves to a public address when the webhook is made and to a private one at delivery gets nothing', async () => {
  const owner = await reelgate.newOwner('rebinds')
  let inside = false
  world.names.set('rebinding.example', () => (inside ? ['127.0.0.1', '::1'] : ['8.8.8.8']))
  const { uuid } = await webhooksOf(owner).create('http://rebinding.example/rebound')
  inside = true
  await owner.delete([(await owner.credentials('A video')).videoId])
  expect(await untilTried(owner, uuid)).toMatchObject({ problem: expect.stringContaining('not on the public internet') })
  expect(canaries.received()).toEqual([])
})

test('W01, S07: of a name with a public and an inside address only the public one is asked', async () => {
  const owner = await reelgate.newOwner('mixes')
  const { uuid } = await webhooksOf(owner).create('http://mixed.example/mixed')
  await owner.delete([(await owner.credentials('A video')).videoId])
  expect(await untilTried(owner, uuid)).toMatchObject({ state: 'delivered' })
  expect(taken).toContain('/mixed')
  expect(canaries.received()).toEqual([])
})

test.each([
  ...[
    'http://127.0.0.1/',
    '//127.0.0.1/',
    'http://[::1]/',
    'http://169.254.169.254/',
    'http://inside.example/',
    'file:///etc/passwd',
  ],
  ...['gopher://127.0.0.1/', 'http://8.8.8.8/elsewhere'],
])('W02: a redirect of a receiver to %s is a failure, and is not followed', async (location) => {
  const owner = await reelgate.newOwner(`redirected to ${location}`)
  const address = `8.8.9.${redirects.push(location)}`
  await world.site(address, (_request, response) => response.writeHead(307, { Location: location }).end())
  const { uuid } = await webhooksOf(owner).create(`http://${address}/`)
  await owner.delete([(await owner.credentials('A video')).videoId])
  expect(await untilTried(owner, uuid)).toMatchObject({
    state: 'waiting',
    responseStatus: 307,
    problem: 'The endpoint returned 307: redirects are not followed.',
  })
  expect(canaries.received()).toEqual([])
  expect(taken).not.toContain('/elsewhere')
})
const redirects: string[] = []

test('F-34, I7: while names cannot be looked up deliveries fail and wait, the API answers, and later they arrive', async () => {
  const owner = await reelgate.newOwner('has no names')
  const { uuid } = await webhooksOf(owner).create('http://good.example/late')
  await world.nameServer.stop()
  try {
    await owner.delete([(await owner.credentials('A video')).videoId])
    expect(await untilTried(owner, uuid)).toMatchObject({
      state: 'waiting',
      responseStatus: null,
      problem: expect.stringMatching(/host name/),
    })
    expect((await owner.list()).count).toBe(0)
    // Nor does it stop an owner from making a webhook: what it leads to is judged whenever it is asked.
    expect((await webhooksOf(owner).create('http://good.example/later')).status).toBe(1)
  } finally {
    await world.nameServer.start()
  }
  await expect.poll(() => taken).toContain('/late')
})

test('a canary that receives: what REELGATE_OUTBOUND_ALLOW names gets a request', async () => {
  const own = await startSharedReelgate(await world.around({ REELGATE_OUTBOUND_ALLOW: '10.0.0.1:80' }))
  try {
    const { uuid } = await webhooksOf(own.owner).create('http://10.0.0.1/')
    await own.owner.delete([(await own.owner.credentials('A video')).videoId])
    await untilTried(own.owner, uuid)
    expect(canaries.received()).toEqual(['10.0.0.1:80'])
  } finally {
    await own.remove()
  }
})

/** The newest delivery once an attempt at it has ended. */
async function untilTried(owner: Owner, uuid: string): Promise<DeliveryBody> {
  const newest = async () => (await webhooksOf(owner).deliveries(uuid, '?limit=1')).rows[0]
  await expect.poll(async () => (await newest())?.triedAt && (await newest())?.state !== 'sending').toBe(true)
  const found = await newest()
  if (!found) throw new Error('there is no delivery')
  return found
}
