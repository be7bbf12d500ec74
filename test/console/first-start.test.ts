import { fstatSync } from 'node:fs'
import { expect, test } from 'vitest'
import { welcomeText } from '../../src/cli/welcome.ts'
import { readConfig } from '../../src/config/config.ts'
import type { ReelgateServer } from '../../src/server.ts'
import { startReelgate } from '../in-process.ts'
import { sendRaw } from '../raw-http.ts'
import { readRows } from '../rows.ts'
import { createPerson } from './person.ts'

// How an owner gets in after the first start, and after a lost link or password.

test('the first start prints a link that signs its owner in once; later starts print where the console is, and no link', async () => {
  const reelgate = await startReelgate()
  const [, base, token = ''] = /^ {2}(http:\S+\/console\/)link#(\w{64})$/m.exec(reelgate.output()) ?? []
  expect(base).toBe(`${reelgate.url.replace('127.0.0.1', 'localhost')}/console/`)
  const stored = JSON.stringify(readRows(reelgate, 'select * from sign_in_link'))
  expect(stored).not.toContain(token)

  await reelgate.stop()
  await reelgate.restart()
  expect(reelgate.output()).toMatch(/^The console {6}npx reelgate console link$/m)
  const owner = createPerson(reelgate.url)
  await owner.get('POST', '/sign-in/link', { token })
  expect((await createPerson(reelgate.url).ask('POST', '/sign-in/link', { body: { token } })).status).toBe(401)
  await owner.get('PUT', '/sign-in/password', { password: 'a lamp in the projection room' })

  await reelgate.stop()
  await reelgate.restart()
  expect(reelgate.output()).toContain(`The console      ${base}\n`)
  expect(reelgate.output()).not.toMatch(/link#|console link/)
  expect((await owner.ask('GET', '/videos')).status).toBe(200) // a restart signs out no browser
})

test('the link’s token is nowhere but in the output of the start: neither in the log nor in the answer of the page', async () => {
  const reelgate = await startReelgate({ env: { REELGATE_LOG_LEVEL: 'trace' } })
  const [link = '', token = ''] = /link#(\w{64})/.exec(reelgate.output()) ?? []
  const printed = reelgate.output().length
  const page = await sendRaw(reelgate.url, 'GET /console/link', ['Accept: text/html'])
  expect(page.status).toBe(200)
  await createPerson(reelgate.url).get('POST', '/sign-in/link', { token })
  expect(reelgate.output().slice(printed)).not.toContain(token)
  expect(reelgate.output().split(link)).toHaveLength(2)
})

test('reelgate console link prints a new link for a person, and says who there is', async () => {
  const reelgate = await startReelgate()
  const { code, stdout } = await reelgate.cli('console', 'link')
  expect(code).toBe(0)
  expect(stdout).toContain('signs in owner once, within 15 minutes')
  const [, token = ''] = /link#(\w{64})\n/.exec(stdout) ?? []
  await createPerson(reelgate.url).get('POST', '/sign-in/link', { token })
  expect((await reelgate.cli('console', 'link', 'stranger')).stderr).toContain(
    'No user is named "stranger". See "reelgate console users".',
  )
  const users = JSON.parse((await reelgate.cli('console', 'users', '--json')).stdout)
  expect(users).toMatchObject([{ name: 'owner', account: 'owner', role: 'owner', isAdministrator: true, disabled: false }])
})

test('where the journal keeps the output, a start prints the command instead of a link', () => {
  const { dev, ino } = fstatSync(process.stdout.fd)
  const server = {
    url: 'http://127.0.0.1:8080',
    firstStart: { account: { accountId: 'a', apiKey: 'the secret' }, recoveryPhrase: ['word'], consoleToken: 'the token' },
    consoleAccess: { url: 'http://localhost:8080/console/', canSignIn: false },
    demoUrl: undefined,
    sandboxAdvice: undefined,
  } satisfies Partial<ReelgateServer> as ReelgateServer
  const kept = welcomeText(readConfig({ JOURNAL_STREAM: `${dev}:${ino}` }), server)
  expect(kept).toContain('The console      npx reelgate console link')
  expect(kept).not.toMatch(/the token|the secret/)
  expect(welcomeText(readConfig({}), server)).toContain('http://localhost:8080/console/link#the token')
})
