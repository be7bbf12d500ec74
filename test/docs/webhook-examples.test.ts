import { execFile, spawn, spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { findFreePort } from '../free-port.ts'
import { startSharedReelgate } from '../in-process.ts'
import { type Received, startReceivers, webhooksOf } from '../webhooks/receiver.ts'

// The examples of docs/webhooks.md, as they stand there, on a delivery that a running server has sent.

const ROOT = join(import.meta.dirname, '..', '..')

let secret: string
let delivery: Pick<Received, 'body' | 'headers'>
let forged: Pick<Received, 'body' | 'headers'>
let page: string
beforeAll(async () => {
  page = await readFile(join(ROOT, 'docs/webhooks.md'), 'utf8')
  const receivers = await startReceivers()
  const reelgate = await startSharedReelgate({ env: { REELGATE_OUTBOUND_ALLOW: receivers.host } })
  cleanUp = async () => {
    await reelgate.remove()
    await receivers.close()
  }
  const receiver = receivers.newReceiver()
  secret = (await webhooksOf(reelgate.owner).create(receiver.url)).secret
  await reelgate.owner.delete([(await reelgate.owner.credentials('Schöner Titel')).videoId])
  const received = await vi.waitUntil(() => receiver.received[0], { timeout: 120_000 })
  delivery = received
  forged = { ...received, body: received.body.replace('Titel', 'Titan') }
})
let cleanUp = async () => {}
afterAll(() => cleanUp())

function example(language: string): string {
  const [, code] = new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 's').exec(page) ?? []
  if (code === undefined) throw new Error(`docs/webhooks.md has no example in ${language}`)
  return code
}

/** Those that this machine has. */
const hasProgram = (name: string) => spawnSync(name, ['--version']).status === 0

test('W03: the example in JavaScript takes a real delivery and refuses a changed one', async () => {
  const run = async ({ body, headers }: typeof delivery) => {
    const given = `const rawBody = ${JSON.stringify(body)}, request = { headers: ${JSON.stringify(headers)} }\n`
    const code = `${given}${example('js')}\nconsole.log(event.event)`
    const env = { ...process.env, HOOK_SECRET: secret }
    return promisify(execFile)(process.execPath, ['--input-type=module', '-e', code], { cwd: ROOT, env })
  }
  expect((await run(delivery)).stdout).toBe('video:deleted\n')
  await expect(run(forged)).rejects.toThrow(/No matching signature/)
})

if (hasProgram('python3'))
  test('W03: the example in Python takes a real delivery and refuses a changed one', async () => {
    const run = async ({ body, headers }: typeof delivery) => {
      const code = `${example('python')}\nimport json, sys\nprint(verify(sys.argv[1], json.loads(sys.argv[2]), sys.argv[3].encode()))`
      return (
        await promisify(execFile)('python3', ['-X', 'utf8', '-c', code, secret, JSON.stringify(headers), body])
      ).stdout.trim()
    }
    expect([await run(delivery), await run(forged)]).toEqual(['True', 'False'])
  })

if (hasProgram('php'))
  test('W03: the example in PHP takes a real delivery and refuses a changed one', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'reelgate-php-'))
    await writeFile(join(folder, 'webhook.php'), `<?php\n${example('php')}\necho 'taken';`)
    const location = `127.0.0.1:${await findFreePort()}`
    const server = spawn('php', ['-S', location, 'webhook.php'], {
      cwd: folder,
      env: { ...process.env, HOOK_SECRET: secret },
      stdio: 'ignore',
    })
    onTestFinished(async () => {
      server.kill()
      await rm(folder, { recursive: true })
    })
    const send = async ({ body, headers }: typeof delivery) => {
      const signed = Object.entries(headers).filter(([name]) => name.startsWith('webhook-'))
      const answer = await fetch(`http://${location}/`, {
        method: 'POST',
        body,
        headers: Object.fromEntries(signed) as Record<string, string>,
      })
      return [answer.status, await answer.text()]
    }
    await expect.poll(() => send(delivery).catch(() => undefined)).toEqual([200, 'taken'])
    expect(await send(forged)).toEqual([400, ''])
  })
