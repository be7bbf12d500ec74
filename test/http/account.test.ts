import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Owner } from '../client.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'

// The settings of an account and its audit log, as its owners see and change them.

let reelgate: Reelgate & { remove(): Promise<void> }
let owner: Owner
beforeAll(async () => {
  reelgate = await startSharedReelgate()
  owner = reelgate.owner
})
afterAll(() => reelgate?.remove())

async function ask<Reply>(method: string, path: string, body?: unknown): Promise<Reply> {
  const response = await owner.call(method, path, { body })
  expect([method, path, response.status]).toEqual([method, path, 200])
  return (await response.json()) as Reply
}

test('an owner changes the settings that are an owner’s; what is absent stays', async () => {
  expect(await ask('GET', '/api/account')).toMatchObject({
    name: 'owner',
    streamLimit: 0,
    whenFull: 'refuse',
    deletesToTrash: false,
    normalizesLoudness: true,
    ...{ transcribes: false, transcribeLanguage: null, watchUrl: null, playerSentences: {} },
  })
  expect(await ask('PUT', '/api/account', { normalizesLoudness: 0 })).toMatchObject({ normalizesLoudness: false, streamLimit: 0 })
  expect(await ask('PUT', '/api/account', { normalizesLoudness: 1 })).toMatchObject({ normalizesLoudness: true })
  expect(await ask('PUT', '/api/account', { streamLimit: 2, whenFull: 'stop-oldest' })).toMatchObject({ streamLimit: 2 })
  expect(await ask('PUT', '/api/account', { deletesToTrash: 1 })).toMatchObject({
    ...{ streamLimit: 2, whenFull: 'stop-oldest', deletesToTrash: true },
  })
  const upload = await owner.credentials('To the trash')
  const { videoId } = upload
  await owner.send(upload, new Blob(['no video']))
  await owner.delete([videoId])
  expect(await ask('GET', '/api/trash')).toMatchObject({ rows: [{ id: videoId }] })
  await ask('PUT', '/api/account', { deletesToTrash: 0, streamLimit: 0, whenFull: 'refuse' })
})

test('F-327: sentences of the player are stored by language and name, reach its viewers, and nothing else is taken for one', async () => {
  const own = { en: { 'watch-again': 'Once more <b>' }, ar: { 'watch-again': 'مرة أخرى' } }
  expect(await ask('PUT', '/api/account', { playerSentences: { ...own, de: {} } })).toMatchObject({ playerSentences: own })
  const refused = [
    { english: { play: 'x' } },
    { en: { __proto: 'x' } },
    { en: { 'UPPER case': 'x' } },
    { en: { play: '' } },
    { en: { play: 'a\nb' } },
    { en: { play: 'x'.repeat(501) } },
    { en: Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`name-${n}`, 'x'.repeat(500)])) },
    { en: 'text' },
    'text',
  ]
  for (const playerSentences of refused)
    expect((await owner.call('PUT', '/api/account', { body: { playerSentences } })).status, JSON.stringify(playerSentences)).toBe(
      400,
    )
  expect(await ask('GET', '/api/account')).toMatchObject({ playerSentences: own })
  const log = await ask<{ rows: { kind: string; details: unknown }[] }>('GET', '/api/audit-log?limit=1')
  expect(JSON.stringify(log)).not.toContain('Once more')
  expect(await ask('PUT', '/api/account', { playerSentences: null })).toMatchObject({ playerSentences: {} })
})

test('an owner does not raise what is the administrator’s to change, however the request names it', async () => {
  const before = await ask('GET', '/api/account')
  const mine = { limitFactor: 1000, pageMax: 100, mayUpload: false, mayImport: false, disabled: 1, videoCount: 9, name: 'mine' }
  await ask('PUT', '/api/account', mine)
  await ask('PUT', '/api/account', { ...mine, id: 'x', changeNumber: 9, otpDefaults: '{}', otpDefaultsRemovable: 1 })
  expect(await ask('GET', '/api/account')).toEqual(before)
})

test('the audit log is read page by page: every event once, the newest first, however many come meanwhile', async () => {
  const videoIds: string[] = []
  for (let count = 0; count < 7; count++) videoIds.push((await owner.credentials(`Video ${count}`)).videoId)
  for (const id of videoIds) await owner.delete([id])
  const read: { id: number; kind: string; subject: string; actor: unknown }[] = []
  for (let path: string | undefined = '/api/audit-log?limit=3'; path; ) {
    const response = await owner.call('GET', path)
    read.push(...((await response.json()) as { rows: typeof read }).rows)
    path = /<[^>]*?(\/api\/audit-log[^>]*)>; rel="next"/.exec(response.headers.get('link') ?? '')?.[1]
    await owner.delete([(await owner.credentials('Meanwhile')).videoId])
  }
  const deleted = read.filter(({ kind }) => kind === 'video:deleted').map(({ subject }) => subject)
  expect(deleted.filter((id) => videoIds.includes(id))).toEqual(videoIds.toReversed())
  expect(read.map(({ id }) => id)).toEqual(read.map(({ id }) => id).toSorted((a, b) => b - a))
  expect(read.find(({ kind }) => kind === 'video:deleted')?.actor).toMatchObject({ type: 'key', name: 'first key' })
})

test('the audit log of another account, and a cursor of it, is of no use', async () => {
  const other = await reelgate.newOwner('Another')
  const page = await owner.call('GET', '/api/audit-log?limit=1')
  const after = /after=([^>&]+)/.exec(page.headers.get('link') ?? '')?.[1]
  expect((await other.call('GET', `/api/audit-log?after=${after}`)).status).toBe(400)
  const { rows } = (await (await other.call('GET', '/api/audit-log')).json()) as { rows: { kind: string }[] }
  expect(rows.map(({ kind }) => kind)).toEqual(['account:created'])
})
