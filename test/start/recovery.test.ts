import { spawn } from 'node:child_process'
import { copyFile, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { getMasterKey } from '../data-folder.ts'
import { type Reelgate, startReelgate, startSharedReelgate } from '../in-process.ts'
import { type Location, makeLocation } from '../installation-folder.ts'
import { readTrace } from '../pipeline/trace.ts'
import { DATABASE } from '../postgres.ts'
import { runCli, startReelgate as startProcess } from '../reelgate.ts'
import { restore } from '../restore-key.ts'
import { sampleOf } from '../sample.ts'
import { makeVideo } from '../videos.ts'

// What the owner has on paper, and a machine that has lost its key.

let stopped: Awaited<ReturnType<typeof startSharedReelgate>>
let words: Words
beforeAll(async () => {
  stopped = await startSharedReelgate()
  words = wordsOf(stopped)
  await stopped.stop()
})
afterAll(() => stopped.remove())

/** A copy of a stopped installation, and the words that its first start printed. */
async function newCopy() {
  const location = await makeLocation({ copyOf: stopped })
  onTestFinished(location.remove)
  return { ...location, words }
}

test('the first start prints 24 numbered words, once; they restore a lost key file, and the videos open', async () => {
  const reelgate = await startReelgate()
  const words = wordsOf(reelgate)
  expect(words.map(({ location }) => location)).toEqual(Array.from({ length: 24 }, (_, index) => index + 1))
  const videoId = await reelgate.owner.readyVideo(await makeVideo({ seconds: 1 }))
  await reelgate.stop()
  const key = getMasterKey(reelgate)
  await rm(reelgate.masterKeyFile)

  const restored = await restore(reelgate, paper(words), { args: ['--json'] })
  expect({ ...restored, stdout: JSON.parse(restored.stdout) }).toEqual({
    code: 0,
    stdout: { masterKeyFile: reelgate.masterKeyFile, restored: true },
    stderr: '',
  })
  expect(getMasterKey(reelgate)).toEqual(key)
  expect((await stat(reelgate.masterKeyFile)).mode & 0o777).toBe(0o600)
  expect(await filesNextTo(reelgate)).toEqual(['data', 'data.key'])
  await reelgate.restart()
  expect(reelgate.output()).not.toMatch(/phrase|^ +1 [a-z]+/m)
  const otp = await reelgate.owner.issueOtp(videoId)
  expect((await reelgate.newViewer().redeem(otp)).playing).toBe(true)
})

test('it works next to the running server, which has the key in memory alone', async () => {
  const reelgate = await startReelgate()
  const words = paper(wordsOf(reelgate))
  await rm(reelgate.masterKeyFile)
  expect(await restore(reelgate, words)).toMatchObject({
    code: 0,
    stdout: `The master key was restored to ${reelgate.masterKeyFile}.\n`,
  })
  expect(await restore(reelgate, words)).toMatchObject({ code: 0, stdout: expect.stringContaining('already') })
  expect(await reelgate.stop()).toBe(0)
  await reelgate.restart()
})

test('wrong words are rejected by their position, and nothing is written', async () => {
  const copy = await newCopy()
  const words = copy.words.map(({ word }) => word)
  await rm(copy.masterKeyFile)
  // Whole sentences: none of the words that were given is in them.
  for (const [given, sentence] of [
    [
      words.with(4, 'xylograph'),
      'Word 5 is not of the list that recovery phrases are made from. Correct the spelling; nothing was changed.',
    ],
    [words.slice(0, 23), 'A recovery phrase has 24 words; these are 23. Nothing was changed.'],
    [[], 'A recovery phrase has 24 words; these are 0. Nothing was changed.'],
    [
      'abandon '.repeat(23).concat('art').split(' '),
      `This recovery phrase belongs to another installation: it does not open ${copy.dataDir}. Nothing was changed.`,
    ],
  ] as const)
    expect(await restore(copy, given.join(' '))).toEqual({ code: 1, stdout: '', stderr: `${sentence}\n` })
  expect(await filesNextTo(copy)).toEqual(['data'])
})

const OTHER_FILES = [
  { what: 'another key', text: `${'0'.repeat(64)}\n` },
  { what: 'an empty file', text: '' },
  { what: 'something else', text: 'my notes\n' },
]
test.each(sampleOf('files in the place of a key', OTHER_FILES, 1))(
  '$what that lies there is not written over',
  async ({ text: there }) => {
    const copy = await newCopy()
    const words = paper(copy.words)
    await writeFile(copy.masterKeyFile, there)
    expect(await restore(copy, words)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/never written over/),
    })
    expect(await readFile(copy.masterKeyFile, 'utf8')).toBe(there)
    expect(await filesNextTo(copy)).toEqual(['data', 'data.key'])
  },
)

test('the words are read only from stdin: an argument is invalid usage', async () => {
  const { env } = await newCopy()
  expect(await runCli(['key', 'restore', 'abandon', 'ability'], env)).toMatchObject({ code: 2, stdout: '' })
})

test('where there is no installation, or the environment has the key, nothing is restored', async () => {
  const copy = await newCopy()
  expect(await restore(copy, 'abandon', { env: { REELGATE_MASTER_KEY: 'ab'.repeat(32) } })).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/REELGATE_MASTER_KEY is set/),
  })
  const elsewhere = await restore({ env: { REELGATE_DATA: `${copy.dataDir}-none` } }, 'abandon')
  expect(elsewhere).toMatchObject({ code: 1, stderr: expect.stringMatching(/There is no installation in/) })
})

test('an owner who has lost the paper sees the phrase again, as long as the key file is there', async () => {
  const copy = await newCopy()
  const words = copy.words.map(({ word }) => word)
  const { stdout } = await runCli(['key', 'phrase', '--json'], copy.env)
  expect(JSON.parse(stdout)).toEqual({ phrase: words.join(' ') })
  await rename(copy.masterKeyFile, `${copy.masterKeyFile}-away`)
  expect(await runCli(['key', 'phrase'], copy.env)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/There is no master key/),
  })
})

test('F-29: a power cut while the first key is written leaves no key file, and the next start creates one', async () => {
  const location = await makeLocation()
  onTestFinished(location.remove)
  const { masterKeyFile } = location
  // Killed before the file gets its name: its bytes are there, under the other one.
  const killed = await runKilledAt('link', location)
  expect(killed).toContain('data.key.new')
  await expect(stat(masterKeyFile)).rejects.toThrow('ENOENT')
  const again = await startReelgate({ env: location.env })
  expect(again.output()).toContain(`The master key is in ${masterKeyFile}`)
  expect(await readFile(masterKeyFile, 'utf8')).toMatch(/^[0-9a-f]{64}\n$/)
  await expect(stat(`${masterKeyFile}.new`)).rejects.toThrow('ENOENT')
  await again.stop()
})

test('F-29, F-30: at the first start the key’s bytes are durable before its name, its name before the database is bound to it, and the names of the data folder and its folders before the server listens', async () => {
  const folder = await newFolder()
  const dataDir = join(folder, 'new/traced')
  const at = await traceFirstStart(dataDir)
  const written = at(/fsync\(\d+<.*traced\.key\.new>/)
  const named = at(/link\(".*\.key\.new", ".*traced\.key"\)/, written)
  const inItsFolder = at(new RegExp(`fsync\\(\\d+<${dirname(dataDir)}>`), named)
  at(BOUND, inItsFolder)

  const serves = at(/listen\(/)
  for (let inner = dataDir; inner !== folder; inner = dirname(inner)) {
    const made = at(new RegExp(`mkdir\\("${inner}", .* = 0`))
    expect(at(new RegExp(`fsync\\(\\d+<${dirname(inner)}>`), made)).toBeLessThan(serves)
  }
  for (const name of ['sources', 'segments', 'posters', 'tmp']) {
    const made = at(new RegExp(`mkdir\\("${dataDir}/${name}", .* = 0`))
    expect(at(new RegExp(`fsync\\(\\d+<${dataDir}>`), made)).toBeLessThan(serves)
  }
})

test('F-29: a key whose start was killed before its name was durable gets its name before the database is bound to it', async () => {
  const dataDir = join(await newFolder(), 'traced')
  await copyFile(stopped.masterKeyFile, `${dataDir}.key`) // what lies there between the link and the fsync
  const at = await traceFirstStart(dataDir)
  const bytes = at(/fsync\(\d+<.*traced\.key>/)
  const folder = at(new RegExp(`fsync\\(\\d+<${dirname(dataDir)}>`), bytes)
  at(BOUND, folder)
})

test('F-29: a key that was only partly written gets no name', async () => {
  const file = join(await newFolder(), 'short.key')
  const module = join(import.meta.dirname, '../../src/crypto/master-key.ts')
  const code = `import { createMasterKey } from ${JSON.stringify(module)}; createMasterKey(${JSON.stringify(file)})`
  const child = spawn('prlimit', ['--fsize=10', process.execPath, '--input-type=module', '-e', code], { stdio: 'ignore' })
  expect(await new Promise((resolve) => child.once('exit', resolve))).not.toBe(0)
  await expect(stat(file)).rejects.toThrow('ENOENT')
})

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-recovery-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** How rows are written: into SQLite's log, or to PostgreSQL. */
const WRITES = DATABASE === 'sqlite' ? 'pwrite64' : 'write,writev'
/** The key's id is among them. */
const BOUND =
  DATABASE === 'sqlite'
    ? /pwrite64\(\d+<.*reelgate\.db-wal>.*master-key-id/
    : /writev?\(\d+<.*insert into ..setting.*master-key-id/

/** @returns finds the place of a call among those of a first start that make things durable */
async function traceFirstStart(dataDir: string): Promise<(pattern: RegExp, after?: number) => number> {
  const trace = join(await newFolder(), 'calls')
  const filter = `trace=fsync,fdatasync,link,mkdir,listen,${WRITES}`
  const traced = await startProcess({
    env: { REELGATE_DATA: dataDir },
    wrapper: ['strace', '-D', '-f', '--seccomp-bpf', '-qq', '-y', '-s', '4096', '-e', filter, '-o', trace],
  })
  await traced.stop()
  const calls = readTrace(await readFile(trace, 'utf8'))
  return (pattern, after = -1) => {
    const found = calls.find(({ text, start }) => start > after && pattern.test(text))
    expect({ pattern, found: found !== undefined }).toEqual({ pattern, found: true })
    return found?.end ?? -1
  }
}

/** A first start that strace kills at its first such call. @returns what is next to the data folder then */
async function runKilledAt(syscall: string, { dataDir, env }: Location): Promise<string[]> {
  const main = join(import.meta.dirname, '../../bin/main.js')
  const inject = ['-e', `trace=${syscall}`, '-e', `inject=${syscall}:signal=KILL:when=1`, '-o', '/dev/null']
  const child = spawn('strace', ['-f', '-qq', ...inject, process.execPath, main, 'serve'], {
    env: { PATH: process.env.PATH ?? '', ...env, PORT: '0', REELGATE_DEMO: 'off' },
    stdio: 'ignore',
  })
  await new Promise((resolve) => child.once('exit', resolve))
  return readdir(dirname(dataDir))
}

type Words = { location: number; word: string }[]

function wordsOf(reelgate: Reelgate): Words {
  return [...reelgate.output().matchAll(/(?<= )(\d{1,2}) ([a-z]{3,8})(?= |$)/gm)].map(([, location, word = '']) => ({
    location: Number(location),
    word,
  }))
}

/** As a person types it from paper: numbered, on several lines. */
function paper(words: readonly { location: number; word: string }[]): string {
  return words.map(({ location, word }) => `${location}. ${word}${location % 6 === 0 ? '\n' : ' '}`).join('')
}

async function filesNextTo({ dataDir }: { dataDir: string }): Promise<string[]> {
  return (await readdir(dirname(dataDir))).filter((name) => name.startsWith(basename(dataDir))).sort()
}
