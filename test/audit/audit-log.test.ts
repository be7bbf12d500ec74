import { expect, test } from 'vitest'
import { listAuditEvents, pruneAuditLog, recordAuditEvent } from '../../src/audit/audit-log.ts'
import { dataPaths } from '../../src/config/data-paths.ts'
import type { CommandName } from '../../src/control/commands.ts'
import { sendCommand } from '../../src/control/socket.ts'
import { createOwner } from '../client.ts'
import { openBarePlayback, outcomeOf } from '../playback/playback-deps.ts'
import { startReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { createViewer } from '../viewer.ts'

type Made = { accountId: string; keyId: string; apiKey: string }

test('L06: management is in the audit record when its answer comes, and stays there after kill -9', async () => {
  const reelgate = await startReelgate({ env: { REELGATE_LIMITS: '{"reads":{"ip":1000,"key":4,"account":1000}}' } })
  const command = (name: CommandName, args: unknown) => sendCommand(dataPaths(reelgate.dataDir).controlSocket, name, args)
  const acts = () => readRows(reelgate, 'select kind, subject, actor, account_id as "accountId" from audit_event order by id')
  const newest = () => acts().at(-1)

  const { accountId, apiKey } = (await command('account create', { name: 'Una', mayUpload: true, mayImport: true })) as Made
  const ofUna = { accountId, actor: 'command-line' }
  expect(newest()).toEqual({ ...ofUna, kind: 'account:created', subject: accountId })

  const made = (await command('key create', {
    account: 'Una',
    name: 'site',
    permissions: ['viewer', 'uploader', 'editor'],
  })) as Made
  expect(newest()).toEqual({ ...ofUna, kind: 'key:created', subject: made.keyId })

  const owner = createOwner(reelgate.url, made.apiKey)
  const { videoId } = await owner.credentials('Not for long')
  await owner.delete([videoId])
  expect(newest()).toEqual({ kind: 'video:deleted', subject: videoId, actor: made.keyId, accountId })

  const folder = (await (await owner.call('POST', '/api/videos/folders', { body: { name: 'Old' } })).json()) as { id: string }
  await owner.call('DELETE', `/api/videos/folders/${folder.id}`)
  expect(newest()).toEqual({ kind: 'folder:deleted', subject: folder.id, actor: made.keyId, accountId })

  const rotated = (await command('key rotate', { keyId: made.keyId, overlapS: 3600 })) as Made
  expect(newest()).toEqual({ ...ofUna, kind: 'key:rotated', subject: made.keyId })

  await command('key revoke', { keyId: made.keyId })
  expect(newest()).toEqual({ ...ofUna, kind: 'key:revoked', subject: made.keyId })

  const list = () => createOwner(reelgate.url, rotated.apiKey).call('GET', '/api/videos')
  const answers = await Promise.all(Array.from({ length: 20 }, list))
  expect(answers.some(({ status }) => status === 429)).toBe(true)
  expect(newest()).toEqual({ accountId, actor: 'server', kind: 'ban:began', subject: rotated.keyId })

  await command('ban lift', { subject: rotated.keyId })
  expect(newest()).toEqual({ ...ofUna, kind: 'ban:lifted', subject: rotated.keyId })

  await command('account set', { account: 'Una', mayImport: false, pageMax: 100 })
  expect(newest()).toEqual({ ...ofUna, kind: 'account:changed', subject: accountId })

  await command('account disable', { account: 'Una' })
  expect(newest()).toEqual({ ...ofUna, kind: 'account:disabled', subject: accountId })

  const before = acts()
  await reelgate.kill()
  expect(acts()).toEqual(before)
  const { stdout } = await reelgate.cli('audit', '--account', 'Una', '--json')
  const listed: { kind: string; accountId: string }[] = JSON.parse(stdout)
  expect(listed.map(({ kind }) => kind)).toEqual([
    'account:disabled',
    'account:changed',
    'ban:lifted',
    'ban:began',
    'key:revoked',
    'key:rotated',
    'folder:deleted',
    'folder:created',
    'video:deleted',
    'key:created',
    'account:created',
  ])
  for (const secret of [apiKey, made.apiKey, rotated.apiKey]) expect(stdout).not.toContain(secret)
})

test('L06: another browser’s redeem is on record when it is refused, once for each OTP, without the viewer', async () => {
  const { db, newOtp, redeemBy, videoId } = await openBarePlayback()
  const newViewer = () => createViewer('http://viewer.invalid')
  const acts = () => db.selectFrom('auditEvent').selectAll().where('kind', '=', 'otp:reused').execute()
  const otp = await newOtp(3600, { userId: 'ann-7f3a9c' })
  await redeemBy(newViewer(), otp)
  expect(await acts()).toEqual([])
  for (let i = 0; i < 3; i++) expect(await outcomeOf(redeemBy(newViewer(), otp, { address: '198.51.100.1' }))).toBe('otp-used')
  expect(await acts()).toMatchObject([{ subject: videoId, actor: 'viewer' }])
  for (const secret of [otp, 'ann-7f3a9c', '198.51.100.1']) expect(JSON.stringify(await acts())).not.toContain(secret)
})

test('acts are kept for a year, and then go by themselves', async () => {
  const { db, write, nowS, passS } = await openBarePlayback()
  const act = { accountId: undefined, by: 'server', kind: 'ban:began' } as const
  const note = (...subjects: string[]) => write((tx) => recordAuditEvent(tx, { ...act, atS: nowS(), subjects }))
  await note(...Array.from({ length: 2500 }, (_, n) => `old ${n}`))
  passS(200 * 24 * 3600)
  await note('young')
  passS(170 * 24 * 3600)
  await pruneAuditLog({ write, nowS })
  expect((await listAuditEvents(db, undefined, 10)).map(({ subject }) => subject)).toEqual(['young'])
})
