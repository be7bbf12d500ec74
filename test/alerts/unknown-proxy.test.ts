import { expect, test } from 'vitest'
import { isPublicAddress } from '../../src/net/ip-ranges.ts'
import { unknownProxiesAmong } from '../../src/net/trusted-proxies.ts'
import { type Reelgate, startReelgate } from '../in-process.ts'
import { runCli } from '../reelgate.ts'

type Listed = { cause: string; numbers: Record<string, unknown> }

async function findAlerts({ owner }: Reelgate): Promise<Listed[]> {
  const { rows } = (await (await owner.call('GET', '/api/alerts?cause=proxy-unknown')).json()) as { rows: Listed[] }
  return rows
}
const forward = ({ url }: Reelgate) => fetch(`${url}/healthz`, { headers: { 'X-Forwarded-For': '203.0.113.7' } })
async function judgeProxy(env: Record<string, string>): Promise<{ state: string; says: string } | undefined> {
  const { stdout } = await runCli(['doctor', '--json'], env)
  return (JSON.parse(stdout) as { check: string; state: string; says: string }[]).find(({ check }) => check === 'proxy')
}

test.each(['', '192.0.2.1'])(
  'R21: a proxy on this machine that is not trusted (trusted: "%s") is an alert, one line of the log, and a warning of doctor',
  async (trusted) => {
    const reelgate = await startReelgate({ env: trusted === '' ? {} : { REELGATE_TRUSTED_PROXIES: trusted } })
    await fetch(`${reelgate.url}/healthz`)
    expect(await findAlerts(reelgate)).toEqual([])
    for (let n = 0; n < 5; n++) await forward(reelgate)
    await expect.poll(() => findAlerts(reelgate)).toMatchObject([{ numbers: { address: '127.0.0.1' }, count: 1 }])
    expect(reelgate.output().split('proxy: not trusted').length - 1).toBe(1)
    const env = { ...reelgate.env, REELGATE_TRUSTED_PROXIES: trusted }
    expect(await judgeProxy(env)).toMatchObject({ state: 'warning', says: expect.stringContaining('127.0.0.1 sends') })
    const mended = await judgeProxy({ ...env, REELGATE_TRUSTED_PROXIES: '127.0.0.1' })
    expect(mended?.says ?? '').not.toContain('127.0.0.1 sends')
  },
)

test('R21: a trusted proxy is none, nor is the header of a stranger where none is trusted', async () => {
  const reelgate = await startReelgate({ env: { REELGATE_TRUSTED_PROXIES: '127.0.0.1' } })
  await forward(reelgate)
  expect(reelgate.output()).not.toContain('not trusted')
  const among = (trusted: string[], addresses: string[]) => addresses.filter(unknownProxiesAmong(trusted))
  const stranger = '8.8.8.8'
  expect(isPublicAddress(stranger)).toBe(true)
  expect(among([], [stranger, '10.0.0.1', '::1', 'fd00::1', ''])).toEqual(['10.0.0.1', '::1', 'fd00::1'])
  expect(among(['10.0.0.0/8'], [stranger, '10.0.0.1', '::1', ''])).toEqual([stranger, '::1'])
})
