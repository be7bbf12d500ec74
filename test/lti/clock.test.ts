import { expect, onTestFinished, test } from 'vitest'
import { parseMasterKey } from '../../src/crypto/master-key.ts'
import { openTicket, sealTicket } from '../../src/lti/choose.ts'
import { createPlatformKeys } from '../../src/lti/platform-keys.ts'
import { beginLogin, openLogin } from '../../src/lti/state.ts'
import { createOutboundPolicy } from '../../src/outbound/policy.ts'
import { newKey, startPlatform } from './platform.ts'

// What ends by the clock.

const ID = 'a'.repeat(32)

function atClock() {
  const clock = { nowS: 1_000_000 }
  return { clock, nowS: () => clock.nowS, masterKey: parseMasterKey(Buffer.alloc(32, 7)) }
}

test('N12: a new key is known a minute after the last look, one that is withdrawn an hour later at most', async () => {
  const platform = await startPlatform()
  onTestFinished(() => platform.close())
  const { clock, nowS } = atClock()
  const keys = createPlatformKeys({ outbound: createOutboundPolicy([platform.host]), nowS })
  const from = { id: ID, accountId: 'b'.repeat(32), keysUrl: `${platform.issuer}/keys` }
  const [old, next] = [platform.state.keys[0]?.kid ?? '', newKey()]
  await keys.get(from, old)
  platform.state.keys = [next]
  clock.nowS += 59
  await expect(keys.get(from, next.kid)).rejects.toThrow(/does not publish/)
  clock.nowS += 1
  await keys.get(from, next.kid)
  await expect(keys.get(from, old)).rejects.toThrow(/does not publish/)

  platform.state.keys = [newKey()]
  clock.nowS += 3599
  await keys.get(from, next.kid)
  clock.nowS += 1
  await expect(keys.get(from, next.kid)).rejects.toThrow(/does not publish/)
  expect(platform.state.asked.filter((path) => path === 'GET /keys')).toHaveLength(3)
})

test('N07: a login ends after ten minutes, is for one platform, and knows its browser', () => {
  const deps = atClock()
  const { state, secret, nonce } = beginLogin(deps, ID, undefined)
  const login = openLogin(deps, ID, state)
  expect(login?.nonce).toBe(nonce)
  expect([login?.isOf(secret), login?.isOf(''), login?.isOf(undefined)]).toEqual([true, false, false])
  expect(openLogin(deps, 'b'.repeat(32), state)).toBeUndefined()
  expect(openLogin({ ...deps, masterKey: parseMasterKey(Buffer.alloc(32, 8)) }, ID, state)).toBeUndefined()
  deps.clock.nowS += 599
  expect(openLogin(deps, ID, state)).toBeDefined()
  deps.clock.nowS += 1
  expect(openLogin(deps, ID, state)).toBeUndefined()
})

test('N18: the ticket of a teacher’s page ends after four hours, is for one platform, and is no login', () => {
  const deps = atClock()
  const request = { platformId: ID, deploymentId: '1', returnUrl: 'https://lms.example/', mayGrade: true }
  const { sealed } = sealTicket(deps, { ...request, data: 'x', courseId: '42', courseTitle: undefined })
  expect(openTicket(deps, ID, sealed)).toMatchObject({ ...request, data: 'x', courseId: '42' })
  expect(() => openTicket(deps, 'b'.repeat(32), sealed)).toThrow(/expired/)
  expect(() => openTicket(deps, ID, beginLogin(deps, ID, undefined).state)).toThrow(/expired/)
  expect(openLogin(deps, ID, sealed)).toBeUndefined()
  deps.clock.nowS += 4 * 3600
  expect(() => openTicket(deps, ID, sealed)).toThrow(/expired/)
})
