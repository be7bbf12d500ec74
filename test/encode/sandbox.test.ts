import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, copyFile, readdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { encoderFingerprint } from '../../src/encode/encoder.ts'
import { probeSource } from '../../src/encode/probe.ts'
import { collect, openSandbox, runMedia, type Sandbox } from '../../src/encode/sandbox.ts'
import { makeFilm as makeLongFilm } from '../films.ts'
import { processesWith } from '../processes.ts'
import { ffmpeg, newFolder, openFilm, seal } from './films.ts'

const LIMITS = { cpuS: 20, wallS: 60 }

test('a machine without ffmpeg is told what to install', async () => {
  await expect(openSandbox([await newFolder()])).rejects.toMatchObject({
    kind: 'unavailable',
    message: 'ffmpeg is not installed: run apt-get install ffmpeg',
  })
})

test('without bubblewrap the sandbox says so, and still works', async () => {
  const folder = await newFolder()
  for (const name of ['ffmpeg', 'ffprobe', 'prlimit'])
    await writeFile(path.join(folder, name), `#!/bin/sh\nexec /usr/bin/${name} "$@"\n`, { mode: 0o755 })
  const sandbox = await openSandbox([folder])
  expect(sandbox.bubblewrap).toBe(false)
  const probe = await probeSource(sandbox, await seal(await makeFilm()))
  expect(probe.picture).toMatchObject({ widthPx: 160, heightPx: 90 })
})

test('the fingerprint names the version of ffmpeg, so that two encoders are never mixed', async () => {
  const sandbox = await openSandbox()
  expect(encoderFingerprint(sandbox)).toContain(sandbox.ffmpegVersion)
  expect(encoderFingerprint({ ...sandbox, ffmpegVersion: '99' })).not.toBe(encoderFingerprint(sandbox))
})

eachCage('M21: a source may have any name', async (sandbox) => {
  const folder = await newFolder()
  const film = await seal(await makeFilm())
  for (const name of ['-i', '--', '|cat', '$(touch x)', '%d.mp4', 'concat:a|b', 'http:x', '*', 'a b,c:d', '\'";\n']) {
    const file = path.join(folder, name)
    await copyFile(film.path, file)
    expect(await probeSource(sandbox, { ...film, path: file })).toMatchObject({ picture: { widthPx: 160 } })
  }
  expect(await readdir(folder)).toHaveLength(10)
})

eachCage('M22: a decoder that never ends is killed at the time limit, with all it has started', async (sandbox) => {
  const mark = `${1_000_000 + Math.floor(Math.random() * 1_000_000)}`
  const scripted = await withScript(sandbox, `sleep ${mark} & sleep ${mark}`)
  const end = await runScript(scripted, { limits: { ...LIMITS, wallS: 0.3 } })
  expect(end).toMatchObject({ outOfTime: true, exitCode: 137 })
  await expect.poll(() => processesWith(mark)).toEqual([])
})

eachCage('M22: what a decoder leaves behind when it ends is killed too', async (sandbox) => {
  const mark = `${1_000_000 + Math.floor(Math.random() * 1_000_000)}`
  const end = await runScript(await withScript(sandbox, `sleep ${mark} & exit 0`))
  expect(end.exitCode).toBe(0)
  await expect.poll(() => processesWith(mark)).toEqual([])
})

eachCage('M23: complaints without an end are drained, and only their last part is kept', async (sandbox) => {
  const end = await runScript(
    await withScript(sandbox, 'head -c 20000000 /dev/zero | tr "\\0" "x" >&2; echo >&2; echo the end >&2'),
  )
  expect(end.exitCode).toBe(0)
  expect(end.stderr.length).toBe(64 * 1024)
  expect(end.stderr.endsWith('the end\n')).toBe(true)
})

eachCage('M25: a decoder that eats the processor ends at its limit', async (sandbox) => {
  const end = await runScript(await withScript(sandbox, 'while :; do :; done'), { limits: { cpuS: 1, wallS: 60 } })
  expect(end).toMatchObject({ outOfTime: false, exitCode: 137 })
})

eachCage('M26: a decoder is told nothing of our environment', async (sandbox) => {
  process.env.REELGATE_TEST_SECRET = 'do not tell'
  onTestFinished(() => {
    delete process.env.REELGATE_TEST_SECRET
  })
  const output = collect(10_000)
  await runScript(await withScript(sandbox, 'cat /proc/$$/environ'), { stdout: output.reader })
  expect(output.bytes().toString()).toBe(sandbox.bubblewrap ? 'PWD=/tmp\0' : '')
})

eachCage('no file can be written', async (sandbox) => {
  const output = collect(10_000)
  const scripted = await withScript(
    sandbox,
    'trap "" XFSZ; echo x > /tmp/reelgate-written-$$ || echo refused; rm -f /tmp/reelgate-written-$$',
  )
  await runScript(scripted, { stdout: output.reader })
  expect(output.bytes().toString()).toContain('refused')
})

test('M24: inside bubblewrap there is no network, no file of the machine and no foreign process', async ({ skip }) => {
  const sandbox = await openSandbox()
  if (!sandbox.bubblewrap) skip()
  let calls = 0
  const canary = createServer(() => {
    calls += 1
  }).listen(0, '127.0.0.1')
  await once(canary, 'listening')
  onTestFinished(() => {
    canary.close()
  })
  const address = canary.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const output = collect(10_000)
  const script = `exec 2>/dev/null; (echo > /dev/tcp/127.0.0.1/${port}) && echo network; cat /etc/passwd && echo files; ls /root /home /work && echo files; echo processes $(ls -d /proc/[0-9]* | wc -l)`
  await runScript(await withScript(sandbox, script), { stdout: output.reader })
  expect(output.bytes().toString()).toMatch(/^processes [1-5]\n$/)
  expect(calls).toBe(0)
})

eachCage('F-04: after kill -9 of the server no ffmpeg goes on', async (sandbox) => {
  const film = await openFilm(await makeLongFilm({ seconds: 60, size: '640x360', sound: false }))
  const server = spawn(process.execPath, [path.join(import.meta.dirname, 'encode-for-ever.ts')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  server.stdin.end(JSON.stringify({ ...film, sandbox }))
  await once(server.stdout, 'data') // its first segment
  expect(await processesWith(film.source.keyHex)).not.toEqual([])
  server.kill('SIGKILL')
  await expect.poll(() => processesWith(film.source.keyHex)).toEqual([])
})

eachCage(
  'F-15: where too many files are open, ffmpeg does not start, which is not the film’s fault, and nothing is left of it',
  async (sandbox) => {
    const source = await seal(await makeFilm())
    const script = path.join(import.meta.dirname, 'out-of-files.ts')
    const server = spawn('prlimit', ['--nofile=128', process.execPath, script], { stdio: ['pipe', 'pipe', 'inherit'] })
    server.stdin.end(JSON.stringify({ source, sandbox }))
    const { outcomes, listeners } = JSON.parse(await text(server.stdout))
    const drawn = `0: ${(160 * 90 * 3) / 2} bytes`
    expect(outcomes.at(0)).toBe(drawn)
    expect(outcomes.at(1)).toBe('EMFILE')
    expect(new Set(outcomes)).toEqual(new Set([drawn, 'EMFILE']))
    expect(outcomes.at(-1)).toBe(drawn)
    expect(listeners).toBe(0)
  },
)

/** One test with bubblewrap, where this machine has it, and one without. */
function eachCage(name: string, body: (sandbox: Sandbox) => Promise<void>) {
  test(`${name} (bubblewrap)`, async ({ skip }) => {
    const sandbox = await openSandbox()
    if (!sandbox.bubblewrap) skip()
    await body(sandbox)
  })
  test(`${name} (without)`, async () => body({ ...(await openSandbox()), bubblewrap: false }))
}

async function makeFilm(): Promise<string> {
  const file = path.join(await newFolder(), 'film.mp4')
  await ffmpeg('-f', 'lavfi', '-i', 'testsrc2=s=160x90:r=25:d=1', '-c:v', 'libx264', file)
  return file
}

/** A sandbox whose ffprobe is a script. */
async function withScript(sandbox: Sandbox, script: string): Promise<Sandbox> {
  const file = path.join(await newFolder(), 'ffprobe')
  await writeFile(file, `#!/usr/bin/bash\nPATH=/usr/bin\n${script}\n`)
  await chmod(file, 0o755)
  return { ...sandbox, tools: { ...sandbox.tools, ffprobe: file } }
}

async function runScript(sandbox: Sandbox, run: Partial<Parameters<typeof runMedia>[1]> = {}) {
  const file = path.join(await newFolder(), 'source')
  await writeFile(file, 'nothing')
  const key = '00'.repeat(16)
  return runMedia(sandbox, {
    tool: 'ffprobe',
    source: { path: file, keyHex: key, ivHex: key, sizeBytes: 7 },
    outputArgs: [],
    limits: LIMITS,
    ...run,
  })
}
