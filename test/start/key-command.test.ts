import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import { Failure } from '../../src/errors.ts'
import { runKeyCommand } from '../../src/installation/key-command.ts'
import { runCli, startReelgate } from '../reelgate.ts'

// The master key from a program, such as that of a key management service or a password store.

const KEY = 'ab'.repeat(32)

test('the master key may come from a command: no file is made, and neither the key nor the output is logged', async () => {
  const program = await newProgram(`echo "looked up $1" >&2; echo ${KEY}`)
  const env = { REELGATE_MASTER_KEY_COMMAND: `${program} 'the key'`, REELGATE_LOG_LEVEL: 'trace' }
  const reelgate = await startReelgate({ env })
  await expect(readFile(reelgate.masterKeyFile)).rejects.toThrow('ENOENT')
  expect(reelgate.output()).toContain('The master key is the one of REELGATE_MASTER_KEY_COMMAND')
  expect(reelgate.output()).not.toMatch(/^ +1 [a-z]+/m)
  expect(reelgate.output()).not.toMatch(new RegExp(`${KEY}|looked up`))
  await reelgate.stop()
  const [fromCommand, fromVariable] = await Promise.all(
    [env, { REELGATE_MASTER_KEY: KEY }].map((key) => runCli(['key', 'phrase'], { ...reelgate.env, ...key })),
  )
  expect(fromCommand).toEqual(fromVariable)
  const other = { REELGATE_MASTER_KEY_COMMAND: await newProgram(`echo ${'12'.repeat(32)}`) }
  expect(await runCli(['serve'], { ...reelgate.env, ...other, PORT: '0' })).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/This master key does not belong to this data folder/),
  })
})

test.each([
  { what: 'fails', script: 'echo secret-1; echo secret-2 >&2; exit 3', words: /failed \(exit code 3\)\. Run it by hand/ },
  { what: 'is killed', script: 'kill -9 $$', words: /failed \(SIGKILL\)/ },
  { what: 'prints something else', script: 'echo secret-1', words: /did not print a master key/ },
  { what: 'prints nothing', script: '', words: /did not print a master key/ },
  { what: 'prints without end', script: 'yes secret-1', words: /printed more than a master key/ },
  { what: 'waits', script: 'exec sleep 600', words: /did not end within 0\.2 s/ },
  { what: 'reads a password', script: 'read password || exit 7', words: /failed \(exit code 7\)/ },
])('a command that $what is reported in words, without what it printed', async ({ script, words }) => {
  const program = await newProgram(script)
  const run = () => runKeyCommand([program], ['/usr/bin', '/bin'], words.source.includes('0\\.2') ? 200 : 20_000)
  expect(run).toThrow(Failure)
  expect(run).toThrow(words)
  expect(run).not.toThrow(/secret-/)
})

test('a command that is missing or may not be run is reported in words', async () => {
  const program = await newProgram(`echo ${KEY}`)
  await chmod(program, 0o600)
  expect(() => runKeyCommand([program], [])).toThrow(/could not be started \(EACCES\)/)
  for (const missing of ['/nowhere/kms', 'no-such-program', './kms', 'bin/sh'])
    expect(() => runKeyCommand([missing], ['/usr/bin', '/'])).toThrow(/does not exist\. Name it by its absolute path/)
})

test('a command is split into words, and its arguments reach the program as they are', async () => {
  const command = (text: string) => readConfig({ REELGATE_MASTER_KEY_COMMAND: text }).masterKeyCommand
  expect(command(`aws kms decrypt --ciphertext-blob fileb:///etc/k --query 'a b' "c d"`)).toEqual([
    ...['aws', 'kms', 'decrypt', '--ciphertext-blob', 'fileb:///etc/k', '--query', 'a b', 'c d'],
  ])
  expect(command(`  pass  show '$(id) | "*" \\' '' `)).toEqual(['pass', 'show', '$(id) | "*" \\', ''])
  const program = await newProgram(`[ "$1" = '$(id) *' ] && echo ${KEY}`)
  expect(runKeyCommand([program, '$(id) *'], []).bytes.toString('hex')).toBe(KEY)
})

test.each([
  'cat /etc/key | head -c 64',
  'cat $HOME/key',
  'cat "$HOME/key"',
  'cat `which key`',
  'cat /etc/key > /tmp/key',
  'a; b',
  'a && b',
  'cat ~/key',
  'cat /etc/*.key',
  "cat 'key",
  'cat "key',
  "cat 'a'b",
  "''",
])('%s needs a shell, so it is refused at the start', (text) => {
  expect(() => readConfig({ REELGATE_MASTER_KEY_COMMAND: text })).toThrow(
    /^REELGATE_MASTER_KEY_COMMAND is invalid: expected a program and its arguments/,
  )
})

test('a command and a key from another place are not taken together', () => {
  expect(() => readConfig({ REELGATE_MASTER_KEY_COMMAND: 'pass show key', REELGATE_MASTER_KEY: KEY })).toThrow(
    /REELGATE_MASTER_KEY and REELGATE_MASTER_KEY_COMMAND are both set: keep one/,
  )
})

async function newProgram(script: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-command-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const program = join(folder, 'print-key')
  await writeFile(program, `#!/bin/sh\n${script}\n`, { mode: 0o700 })
  return program
}
