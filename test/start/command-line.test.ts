import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test as inEveryRun, onTestFinished } from 'vitest'
import type { CommandName } from '../../src/control/commands.ts'
import { sendCommand } from '../../src/control/socket.ts'
import { takeFolderLock } from '../../src/storage/folder-lock.ts'
import { createOwner } from '../client.ts'
import { startReelgate, startSharedReelgate } from '../in-process.ts'
import { makeLocation } from '../installation-folder.ts'
import { runCli, startReelgate as startProcess } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { sampledTests, sampleOf } from '../sample.ts'
import { rounds } from '../seeded-random.ts'

const { test, draw } = sampledTests('the command line', 4)

type Account = { accountId: string; apiKey: string }
type Key = { id: string; name: string; permissions: string[]; revokedAtS: number | null }

let running: Awaited<ReturnType<typeof startSharedReelgate>>
beforeAll(async () => {
  running = await startSharedReelgate()
})
afterAll(() => running.remove())

test.each([{ where: 'with a running server' }, { where: 'without a server' }])(
  'accounts and keys are created, listed and revoked $where',
  async ({ where }) => {
    const cli = where === 'without a server' ? await withoutServer() : running.cli
    const json = async <T>(...args: string[]): Promise<T> => {
      const { code, stdout, stderr } = await cli(...args, '--json')
      expect([code, stderr]).toEqual([0, ''])
      expect(stdout.trimEnd()).not.toContain('\n') // one value on one line
      return JSON.parse(stdout)
    }
    const made = await json<Account>('account', 'create', 'Ünna')
    expect(made).toEqual({
      accountId: expect.stringMatching(/^[0-9a-f]{32}$/),
      apiKey: expect.stringMatching(/^[A-Za-z0-9]{64}$/),
    })
    expect(await json<{ id: string; name: string }[]>('account', 'list')).toContainEqual(
      expect.objectContaining({ name: 'Ünna' }),
    )
    const key = await json<Record<string, string>>(
      'key',
      'create',
      made.accountId,
      '--name',
      'reader',
      '--permission',
      'viewer',
      'otpCreator',
    )
    expect(Object.values(key).some((value) => /^[A-Za-z0-9]{64}$/.test(value))).toBe(true)
    const keys = await json<Key[]>('key', 'list', made.accountId)
    expect(keys).toHaveLength(2)
    expect(keys.find(({ name }) => name === 'reader')).toMatchObject({ permissions: ['viewer', 'otpCreator'] })
    const reader = keys.find(({ name }) => name === 'reader')?.id ?? ''
    expect(await json('key', 'revoke', reader)).toEqual({ keyId: reader, revoked: true })
    expect((await json<Key[]>('key', 'list', made.accountId)).find(({ id }) => id === reader)).toMatchObject({
      revokedAtS: expect.any(Number),
    })
  },
)

inEveryRun('K12: what the command line prints once is nowhere in the data folder', async () => {
  const reelgate = await startReelgate()
  const { stdout } = await reelgate.cli('account', 'create', 'Una', '--json')
  const { apiKey }: Account = JSON.parse(stdout)
  await reelgate.stop()
  expect(JSON.stringify(readRows(reelgate, 'select * from api_key'))).not.toContain(apiKey)
})

test.each(sampleOf('invalid usage', [{ isRunning: true }, { isRunning: false }], 1))(
  'invalid usage exits with 2, a failure with 1, with a message (server running: $isRunning)',
  async ({ isRunning }) => {
    const cli = isRunning ? running.cli : await withoutServer()
    const wrong = [[], ['fly'], ['account', 'create'], ['account', 'list', '--what']]
    for (const args of sampleOf('wrong arguments', wrong, 1)) {
      const { code, stdout, stderr } = await cli(...args)
      expect({ args, code, stdout }).toEqual({ args, code: 2, stdout: '' })
      expect(stderr).not.toMatch(/^ +at /m)
    }
    const failing = [
      ['key', 'list', 'nothing'],
      ['key', 'revoke', '0'.repeat(32)],
      ['key', 'create', '0'.repeat(32), '--permission', 'everything'],
    ]
    for (const args of sampleOf('failing commands', failing, 1)) {
      const { code, stdout, stderr } = await cli(...args, '--json')
      expect({ args, code, stdout, stderr }).toEqual({
        args,
        code: 1,
        stdout: '',
        stderr: expect.stringMatching(/^[A-Z][^\n]*\.\n$/),
      })
    }
  },
)

test('help and version exit with 0, and serve --help lists every variable', async () => {
  expect(await runCli(['--version'], {})).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^\d+\.\d+\.\d+(-[a-z]+)?\n$/),
    stderr: '',
  })
  const help = await runCli(['serve', '--help'], {})
  expect(help.code).toBe(0)
  for (const name of [
    'PORT',
    'HOST',
    'REELGATE_DATA',
    'REELGATE_PUBLIC_URL',
    'REELGATE_MASTER_KEY_FILE',
    'REELGATE_UPLOAD_MAX_BYTES',
  ])
    expect(help.stdout).toContain(`  ${name} `)
})

test('webhook and hook are the same command', async () => {
  for (const topic of ['webhook', 'hook'])
    expect(await running.cli(topic, 'list', 'owner', '--json')).toMatchObject({ code: 0, stdout: '[]\n' })
})

inEveryRun('K09: a key revoked on the command line is rejected at the next request of an open connection', async () => {
  const { accountId, apiKey } = (await command('account create', { name: 'Una', mayUpload: true, mayImport: true })) as Account
  const [key] = (await command('key list', { account: accountId })) as Key[]
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  onTestFinished(() => agent.destroy())
  const list = () =>
    new Promise<{ status: number; port: number }>((resolve, reject) => {
      const sent = request(
        `${running.url}/api/videos`,
        { agent, headers: { Authorization: `Apisecret ${apiKey}` } },
        (answer) => {
          const found = { status: answer.statusCode ?? 0, port: answer.socket.localPort ?? 0 }
          answer.resume().once('end', () => resolve(found))
        },
      )
      sent.once('error', reject).end()
    })
  const before = await list()
  expect(before.status).toBe(200)
  expect((await running.cli('key', 'revoke', key?.id ?? '')).code).toBe(0)
  expect(await list()).toEqual({ status: 401, port: before.port })
})

test('an account without uploads gets no upload credentials', async () => {
  const { apiKey }: Account = JSON.parse((await running.cli('account', 'create', 'Una', '--no-upload', '--json')).stdout)
  expect((await createOwner(running.url, apiKey).call('PUT', '/api/videos?title=x')).status).toBe(403)
})

test('commands also work with a long path of the data folder', async () => {
  const folder = await newFolder()
  const dataDir = join(folder, ...Array.from({ length: 6 }, (_, i) => `a-folder-with-a-long-name-${i}`), 'data')
  expect(dataDir.length).toBeGreaterThan(150)
  await mkdir(join(dataDir, '..'), { recursive: true })
  const reelgate = await startReelgate({ env: { REELGATE_DATA: dataDir } })
  const { code, stdout, stderr } = await reelgate.cli('account', 'list', '--json')
  expect([code, stderr]).toEqual([0, ''])
  expect(JSON.parse(stdout)).toHaveLength(1)
})

test('concurrent commands to a running server all succeed', async () => {
  const names = Array.from({ length: rounds(4, 8) }, (_, i) => `owner ${i}`)
  const made = await Promise.all(names.map((name) => running.cli('account', 'create', name)))
  expect(made.map(({ code }) => code)).toEqual(names.map(() => 0))
  const listed = (await command('account list', {})) as { name: string }[]
  expect(listed.map(({ name }) => name)).toEqual(expect.arrayContaining(names))
})

test('after kill -9 of the server a command works by itself, and one that another keeps from the folder waits, then says to try again', async () => {
  const reelgate = await startProcess()
  await reelgate.kill()
  expect(await reelgate.cli('account', 'create', 'Una', '--json')).toMatchObject({ code: 0, stderr: '' })
  const lock = takeFolderLock(join(reelgate.dataDir, 'lock.db'))
  expect(await reelgate.cli('account', 'list')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/in use.*Try again in a moment/),
  })
  lock?.release()
})

inEveryRun('F-09: an open connection to the command socket does not keep the server from stopping', async () => {
  const reelgate = await startProcess()
  const socket = connect(join(reelgate.dataDir, 'control.sock'))
  await new Promise((resolve) => socket.once('connect', resolve))
  expect(await reelgate.stop()).toBe(0)
  socket.destroy()
})

test('a command that disconnects does not end the server', async () => {
  for (const line of ['', '{"name":', '{"name":"account list","args":{}}\n']) {
    const socket = connect(join(running.dataDir, 'control.sock'))
    await new Promise((resolve) => socket.write(line, resolve))
    socket.destroy()
  }
  expect(await command('account list', {})).not.toEqual([])
})

test('an unknown command is answered with a sentence, and the server continues', async () => {
  for (const line of [
    'not JSON',
    '{}',
    '[]',
    'null',
    '{"name":"__proto__"}',
    '{"name":"account create","args":null}',
    '{"name":"constructor","args":{}}',
  ]) {
    const socket = connect(join(running.dataDir, 'control.sock'))
    const answer = new Promise<string>((resolve) => socket.once('data', (bytes: Buffer) => resolve(bytes.toString())))
    socket.write(`${line}\n`)
    expect(JSON.parse(await answer)).toMatchObject({ error: expect.stringMatching(/\.$/) })
    socket.destroy()
  }
  expect(await command('account list', {})).not.toEqual([])
})

/** As the command line does, without a process. */
const command = (name: CommandName, args: unknown) => sendCommand(join(running.dataDir, 'control.sock'), name, args)

async function withoutServer() {
  const location = await makeLocation()
  onTestFinished(location.remove)
  return (...args: string[]) => runCli(args, location.env)
}

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-cli-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  return folder
}

draw()
