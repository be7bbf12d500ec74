import { expect, test } from 'vitest'
import { createApiKey, createAuthenticate, findApiKeys, revokeKey, rotateKey } from '../../src/accounts/api-key.ts'
import { createKeyUseTracker } from '../../src/accounts/key-use.ts'
import { onlyServer } from '../../src/servers/servers.ts'
import { createSignals } from '../../src/signals/signals.ts'
import { startReelgate } from '../in-process.ts'
import { openBarePlayback, outcomeOf } from '../playback/playback-deps.ts'
import { readRows } from '../rows.ts'
import { createViewer } from '../viewer.ts'

// What becomes of a key in time, on a clock that the test moves. Over HTTP: test/http/credentials.test.ts.

const HOUR_S = 3600
const DAY_S = 24 * HOUR_S
const newViewer = () => createViewer('http://viewer.invalid')

async function open() {
  const bare = await openBarePlayback()
  const { db, write, nowS } = bare
  const deps = { db, write, signals: createSignals(write), servers: onlyServer('one', 'one'), nowS }
  let commits = 0
  write.onCommit(() => commits++)
  const authenticate = createAuthenticate(deps)
  return {
    ...bare,
    deps,
    commits: () => commits,
    newKey: (lifeS?: number) => createApiKey(deps, 'owner', { name: 'site', permissions: ['viewer', 'otpCreator'], lifeS }),
    keys: () => findApiKeys(deps, 'owner'),
    opens: async (key: string) =>
      authenticate(key).then(
        () => true,
        () => false,
      ),
  }
}

test('K10: after a rotation old and new key open alternately, then only the new one', async () => {
  const { deps, newKey, keys, opens, passS } = await open()
  const old = await newKey()
  const made = await rotateKey(deps, old.keyId, DAY_S)
  for (let hour = 0; hour < 24; hour++) {
    expect([await opens(old.apiKey), await opens(made.apiKey)]).toEqual([true, true])
    passS(HOUR_S)
  }
  for (let i = 0; i < 3; i++) expect([await opens(old.apiKey), await opens(made.apiKey)]).toEqual([false, true])
  const ofId = new Map((await keys()).map((key) => [key.id, key]))
  const same = { name: 'site', permissions: ['viewer', 'otpCreator'] }
  expect(ofId.get(old.keyId)).toMatchObject({ ...same, expiresAtS: made.oldExpiresAtS })
  expect(ofId.get(made.keyId)).toMatchObject({ ...same, expiresAtS: null })
})

test('a key that was made for 90 days is rotated into one for 90 days, and lives on no longer than it would have', async () => {
  const { deps, newKey, opens, passS, nowS } = await open()
  const old = await newKey(90 * DAY_S)
  passS(89 * DAY_S)
  const made = await rotateKey(deps, old.keyId, 7 * DAY_S)
  expect(made.expiresAtS).toBe(nowS() + 90 * DAY_S)
  passS(DAY_S)
  expect([await opens(old.apiKey), await opens(made.apiKey)]).toEqual([false, true])
  await expect(rotateKey(deps, old.keyId, 0)).rejects.toThrow('There is no live API key')
  passS(89 * DAY_S)
  expect(await opens(made.apiKey)).toBe(false)
})

test('K09: a key ends at its second, though nothing is written and its holder is remembered', async () => {
  const { newKey, opens, passS, commits } = await open()
  const { apiKey } = await newKey(60)
  expect(await opens(apiKey)).toBe(true)
  const before = commits()
  passS(59)
  expect(await opens(apiKey)).toBe(true)
  passS(1)
  expect(await opens(apiKey)).toBe(false)
  expect(commits()).toBe(before)
})

test.each([
  { end: 'expires', revoked: false },
  { end: 'is revoked', revoked: true },
])('O07: an unspent OTP dies with its key when that $end; sessions play on', async ({ revoked }) => {
  const { deps, newKey, newOtp, redeemBy, ask, passS } = await open()
  const key = await newKey(HOUR_S / 2)
  const [spent, kept] = [await newOtp(DAY_S, { apiKeyId: key.keyId }), await newOtp(DAY_S, { apiKeyId: key.keyId })]
  const viewer = newViewer()
  await redeemBy(viewer, spent)
  if (revoked) await revokeKey(deps, key.keyId)
  else passS(HOUR_S / 2)
  expect(await outcomeOf(redeemBy(newViewer(), kept))).toBe('otp-unknown')
  expect(await outcomeOf(redeemBy(newViewer(), spent))).toBe('otp-unknown')
  expect(await outcomeOf(ask(viewer))).toBe('allowed')
})

test('the last use of keys is collected and written in one go, and again only for keys used since', async () => {
  const { deps, newKey, keys, passS, nowS, commits } = await open()
  const uses = createKeyUseTracker(deps)
  const authenticate = createAuthenticate(deps, uses.record)
  const [used, unused] = [await newKey(), await newKey()]
  const before = commits()
  for (let i = 0; i < 100; i++) {
    await authenticate(used.apiKey)
    passS(1)
  }
  await authenticate('x'.repeat(64)).catch(() => undefined)
  expect(commits()).toBe(before)
  await uses.save()
  expect(commits()).toBe(before + 1)
  await uses.save()
  expect(commits()).toBe(before + 1)
  const lastUse = Object.fromEntries((await keys()).map(({ id, lastUsedAtS }) => [id, lastUsedAtS]))
  expect([lastUse[used.keyId], lastUse[unused.keyId]]).toEqual([nowS() - 1, null])
})

test('on the command line a key is made for a time, shown with its use, and rotated', async () => {
  const reelgate = await startReelgate()
  const nowS = Math.floor(Date.now() / 1000)
  const made = JSON.parse((await reelgate.cli('key', 'create', 'owner', '--name', 'site', '--expires', '90d', '--json')).stdout)
  expect(Math.abs(made.expiresAtS - nowS - 90 * DAY_S)).toBeLessThan(DAY_S) // by the playback clock, which may be behind
  await reelgate.owner.list()
  await reelgate.stop()
  // The use is saved at the stop, and the rest works without a server.
  expect(readRows(reelgate, 'select last_used_at_s as at from api_key where last_used_at_s is not null')).toHaveLength(1)
  const { code, stdout } = await reelgate.cli('key', 'list', 'owner')
  expect(code).toBe(0)
  expect(stdout).toMatch(/^name +site$/m)
  expect(stdout).toMatch(/^lastUsedAtS +\d{4}-\d\d-\d\dT/m)
  expect((await reelgate.cli('audit')).stdout).toMatch(/^atS +\d{4}-\d\d-\d\dT/m)
  expect((await reelgate.cli('key', 'create', 'owner', '--expires', '2001-01-01')).code).toBe(2)
})
