import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runCheck } from '../../conformance/check.ts'
import { type Installation, openInstallation } from '../../conformance/installation.ts'
import { SECTIONS } from '../../conformance/sections.ts'
import { PERMISSIONS } from '../../src/accounts/permission.ts'
import { dataPaths } from '../../src/config/data-paths.ts'
import type { CommandName } from '../../src/control/commands.ts'
import { sendCommand } from '../../src/control/socket.ts'
import { findFreePort } from '../free-port.ts'
import { type Reelgate, startReelgate, startSharedReelgate } from '../in-process.ts'

// The wire contract, line by line, asked of a server of our own that was given everything the suite can use.

let reelgate: Reelgate & { remove(): Promise<void> }
let at: Installation
beforeAll(async () => {
  const listen = { host: '127.0.0.1', port: await findFreePort() }
  const roomy = { ip: 100_000, key: 100_000, account: 100_000 }
  reelgate = await startSharedReelgate({
    env: {
      REELGATE_OUTBOUND_ALLOW: `127.0.0.1:${listen.port}`,
      // The suite calls faster than an owner does, and would otherwise wait for the limits. Only that of uploads is reached, at the end.
      REELGATE_LIMITS: JSON.stringify({
        reads: roomy,
        writes: roomy,
        otp: roomy,
        unauthenticated: { ip: roomy.ip },
        uploads: { ip: 600, key: 1200, account: 2400 },
      }),
    },
  })
  const permissionKeys = new Map<string, string>()
  for (const permission of PERMISSIONS) {
    const made = await command<{ apiKey: string }>('key create', {
      ...{ account: 'owner', name: permission },
      permissions: [permission],
    })
    permissionKeys.set(permission, made.apiKey)
  }
  const other = await reelgate.newOwner('another')
  const off = await command<{ apiKey: string }>('account create', { name: 'off', mayUpload: false, mayImport: false })
  at = openInstallation(
    {
      base: reelgate.url,
      key: reelgate.owner.apiKey,
      otherKey: other.apiKey,
      permissionKeys,
      offKey: off.apiKey,
      listen,
      exceed: true,
    },
    () => undefined,
  )
})
afterAll(async () => {
  await at.cleanUp()
  const { count } = await reelgate.owner.list()
  await reelgate.remove()
  expect(count, 'videos left behind').toBe(0)
})

async function command<Made>(name: CommandName, args: unknown): Promise<Made> {
  return (await sendCommand(dataPaths(reelgate.dataDir).controlSocket, name, args)) as Made
}

for (const { section, title, checks } of SECTIONS) {
  describe(`${section}. ${title}`, () => {
    for (const check of checks) {
      test(check.name, async () => {
        expect(await runCheck(section, check, at)).toEqual({ section, name: check.name, outcome: 'ok' })
      })
    }
  })
}

test('no two checks have one name', () => {
  const names = SECTIONS.flatMap(({ title, checks }) => checks.map(({ name }) => `${title}: ${name}`))
  expect(new Set(names).size).toBe(names.length)
})

const MAIN = join(import.meta.dirname, '../../conformance/main.ts')

test('npm run conformance prints the outcome of each check, and which checks it skipped for lack of an option', async () => {
  const { url, owner } = await startReelgate()
  const args = ['--base', url, '--key', owner.apiKey, '--only', 'list: n']
  const { stdout } = await promisify(execFile)(process.execPath, [MAIN, ...args])
  expect(stdout).toMatch(/^ok {3}list: newest first/m)
  expect(stdout).toMatch(/^-- {3}list: nothing of another account — not checked: needs --other-key$/m)
  expect(stdout).toMatch(/\n\d+ passed, 0 failed, 1 skipped\n$/)
})

test('an installation that differs fails, and the output names what was expected and what was received', async () => {
  const args = ['--base', `${reelgate.url}/nowhere`, '--key', reelgate.owner.apiKey, '--only', 'tags: all']
  const { code, stdout } = await promisify(execFile)(process.execPath, [MAIN, ...args]).catch((error) => error)
  expect(code).toBe(1)
  expect(stdout).toMatch(/^FAIL tags: all .* — status: expected 200, got 404/m)
})

test('without an address or a key it prints its usage', async () => {
  const { code, stderr } = await promisify(execFile)(process.execPath, [MAIN]).catch((error) => error)
  expect(code).toBe(2)
  for (const option of ['--base', '--key', '--other-key', '--listen']) expect(stderr).toContain(option)
})
