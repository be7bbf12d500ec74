import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, copyFile, cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import path from 'node:path'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { encodeAudioChunk } from '../../src/encode/audio-chunk.ts'
import { encodeVideoChunk } from '../../src/encode/chunk.ts'
import { encoderFingerprint } from '../../src/encode/encoder.ts'
import { extractPosters } from '../../src/encode/extract-posters.ts'
import { reencodeImage, renderPosterSizes, sealImage } from '../../src/encode/image.ts'
import { probeSource } from '../../src/encode/probe.ts'
import { openSandbox, type Sandbox, sandboxAdvice } from '../../src/sandbox/bubblewrap.ts'
import { collect } from '../../src/sandbox/child-process.ts'
import { runMedia, runMediaToFiles, runProgram } from '../../src/sandbox/run.ts'
import { BLOCKED_CALLS } from '../../src/sandbox/system-calls.ts'
import { librariesIn, visiblePaths } from '../../src/sandbox/visible-paths.ts'
import { processesWith } from '../processes.ts'
import { sampledTests, sampleOf } from '../sample.ts'
import { makeVideo } from '../videos.ts'
import { openCanary } from './canary.ts'
import { fileOf, sealedSource } from './sealed-source.ts'
import { ffmpeg, newFolder, openDefaultSandbox, openVideo, seal, withoutBubblewrap } from './videos.ts'

const { test: withoutIt, draw } = sampledTests('without bubblewrap', 2)

const LIMITS = { cpuS: 20, wallS: 60 }
const makeSmallVideo = () => makeVideo({ seconds: 1, size: '160x90' })

test('on a machine without ffmpeg the error says what to install', async () => {
  await expect(openSandbox({ toolFolders: [await newFolder()] })).rejects.toMatchObject({
    kind: 'unavailable',
    message: 'ffmpeg is not installed: run apt-get install ffmpeg',
  })
})

test('M30: where there is no bubblewrap nothing is opened, and it says what to do; where the owner says so, limits are enough', async () => {
  const folder = await newFolder()
  await linkTools(folder)
  const source = await seal(await makeSmallVideo())
  const sandbox = await openSandbox({ toolFolders: [folder] })
  expect(sandbox.bubblewrap).toBe(false)
  await expect(probeSource(sandbox, source)).rejects.toMatchObject({
    kind: 'unavailable',
    message: expect.stringContaining('reelgate doctor'),
  })
  const said = (of: Sandbox) => [sandboxAdvice(of)?.effect, ...(sandboxAdvice(of)?.cures ?? [])].join('\n')
  expect(said(sandbox)).toMatch(
    /it is not installed.*uploads wait.*apt-get install bubblewrap.*--security-opt seccomp.*REELGATE_SANDBOX=weak/s,
  )
  const weak = await openSandbox({ toolFolders: [folder], sandbox: 'weak' })
  expect(said(weak)).toMatch(/runs without it/)
  expect((await probeSource(weak, source)).videoTrack).toMatchObject({ widthPx: 160, heightPx: 90 })
})

test('M30: a bubblewrap that fails once when it is tried is tried again', async () => {
  const { folder } = await newBubblewrap('mkdir "$0.failed" 2>/dev/null && exit 1')
  const cacheDir = path.join(folder, 'cache')
  const sandbox = await openSandbox({ toolFolders: [folder], cacheDir })
  expect(sandbox).toMatchObject({ bubblewrap: true, problem: undefined })
  expect(sandboxAdvice(sandbox)).toBeUndefined()
})

test('a later start tries bubblewrap without starting ffmpeg, as long as ffmpeg is the same file', async () => {
  const { folder, failing } = await newBubblewrap(
    `[ -e "$0.failing" ] && { echo "bwrap: not now" >&2; exit 1; }
    case "$*" in *'ffmpeg -version') mkdir -p "$0.starts/$$";; esac`, // no file can be written
  )
  const program = path.join(folder, 'ffmpeg')
  await rm(program)
  await copyFile('/usr/bin/ffmpeg', program)
  const cacheDir = path.join(folder, 'cache')
  const open = () => openSandbox({ toolFolders: [folder], cacheDir })
  const ffmpegStarts = async () => (await readdir(path.join(folder, 'bwrap.starts'))).length
  const first = await open()
  expect(await ffmpegStarts()).toBe(1)
  expect(await open()).toMatchObject({ bubblewrap: true, visible: first.visible, ffmpegVersion: first.ffmpegVersion })
  await writeFile(failing, '')
  expect(await open()).toMatchObject({ bubblewrap: false, problem: 'bwrap: not now' })
  await rm(failing)
  expect(await ffmpegStarts()).toBe(1)
  await copyFile('/usr/bin/ffmpeg', program)
  await open()
  expect(await ffmpegStarts()).toBe(2)
  await writeFile(path.join(cacheDir, 'ffmpeg.json'), '{"files":')
  expect(await open()).toMatchObject({ bubblewrap: true, visible: first.visible, ffmpegVersion: first.ffmpegVersion })
  expect(await ffmpegStarts()).toBe(3)
})

test('M30: where bubblewrap fails nothing of others is opened until it works; what ffmpeg makes itself it makes', async () => {
  const { folder, failing } = await newBubblewrap('[ -e "$0.failing" ] && { echo "bwrap: not now" >&2; exit 1; }')
  await writeFile(failing, '')
  const sandbox = await openSandbox({ toolFolders: [folder] })
  expect(sandbox).toMatchObject({ bubblewrap: false, problem: 'bwrap: not now' })
  const source = await seal(await makeSmallVideo())
  await expect(probeSource(sandbox, source)).rejects.toMatchObject({ kind: 'unavailable' })
  const output = collect(10_000)
  const args = ['-f', 'lavfi', '-i', 'color=s=2x2:d=1:r=1', '-f', 'rawvideo', 'pipe:1']
  await runMediaToFiles(sandbox, { args, stdout: output.reader, limits: LIMITS })
  expect(output.bytes()).toHaveLength(6)
  await rm(failing)
  sandbox.nextTryMs = 0 // what some seconds do
  expect(await probeSource(sandbox, source)).toMatchObject({ videoTrack: { widthPx: 160 } })
})

test('M30: where bubblewrap has worked, nothing runs without it, whatever the owner allowed', async () => {
  const { folder, failing } = await newBubblewrap('[ -e "$0.failing" ] && { echo "bwrap: not now" >&2; exit 1; }')
  const sandbox = await openSandbox({ toolFolders: [folder], sandbox: 'weak' })
  expect(sandbox.bubblewrap).toBe(true)
  const source = await seal(await makeSmallVideo())
  await writeFile(failing, '')
  await expect(probeSource(sandbox, source)).rejects.toMatchObject({
    kind: 'unavailable',
    message: 'the sandbox did not start: bwrap: not now',
  })
  await rm(failing)
  expect(await probeSource(sandbox, source)).toMatchObject({ videoTrack: { widthPx: 160 } })
})

test('M30: a bubblewrap that does not start is the machine’s trouble, whatever it was started for, never a fault of the file', async () => {
  const { folder, failing } = await newBubblewrap('[ -e "$0.failing" ] && { echo "bwrap: not now" >&2; exit 1; }')
  const { source, plan } = await openVideo(await makeSmallVideo())
  const image = await ffmpeg('-f', 'lavfi', '-i', 'color=s=16x16', '-frames:v', '1', '-c:v', 'png', '-f', 'image2pipe', '-')
  const sandbox = await openSandbox({ toolFolders: [folder] })
  await writeFile(failing, '')
  const sink = { onInit: () => undefined, onSegment: () => undefined }
  const request = { sandbox, source, plan, chunk: { firstSegment: 0, segmentCount: 1, decodesFromStart: true } }
  const videoTrack = await sealImage(folder, Readable.from([image]))
  const uses = {
    probe: () => probeSource(sandbox, source),
    video: () => encodeVideoChunk({ ...request, threads: 1 }, sink),
    audio: () => encodeAudioChunk(request, sink),
    posters: () => extractPosters(sandbox, source, plan),
    poster: () => renderPosterSizes(sandbox, videoTrack),
    watermark: () => reencodeImage(sandbox, folder, image),
  }
  for (const [use, start] of Object.entries(uses))
    await expect(start(), use).rejects.toMatchObject({
      kind: 'unavailable',
      message: 'the sandbox did not start: bwrap: not now',
    })
})

test('the fingerprint names the version of ffmpeg, so that two encoders are never mixed', async () => {
  const sandbox = await openSandbox({ sandbox: 'weak' })
  expect(encoderFingerprint(sandbox)).toContain(sandbox.ffmpegVersion)
  expect(encoderFingerprint({ ...sandbox, ffmpegVersion: '99' })).not.toBe(encoderFingerprint(sandbox))
})

eachSandbox('M21: a source may have any name', async (sandbox) => {
  const folder = await newFolder()
  const video = await seal(await makeSmallVideo())
  const names = ['-i', '--', '|cat', '$(touch x)', '%d.mp4', 'concat:a|b', 'http:x', '*', 'a b,c:d', '\'";\n']
  const drawn = sampleOf('names of a source', names, 2)
  for (const name of drawn) {
    const file = path.join(folder, name)
    await video.withLocalCopy((sealed) => copyFile(sealed, file))
    expect(await probeSource(sandbox, { ...video, withLocalCopy: (use) => use(file) })).toMatchObject({
      videoTrack: { widthPx: 160 },
    })
  }
  expect(await readdir(folder)).toHaveLength(drawn.length)
})

eachSandbox('M22: a decoder that never ends is killed at the time limit, with all it has started', async (sandbox) => {
  const mark = `${1_000_000 + Math.floor(Math.random() * 1_000_000)}`
  const scripted = await withScript(sandbox, `fork; exec '/usr/bin/sleep', '${mark}'`)
  const end = await runScript(scripted, { limits: { ...LIMITS, wallS: 0.3 } })
  expect(end).toMatchObject({ outOfTime: true, exitCode: 137 })
  await expect.poll(() => processesWith(mark)).toEqual([])
})

eachSandbox('M22: what a decoder leaves behind when it ends is killed too', async (sandbox) => {
  const mark = `${1_000_000 + Math.floor(Math.random() * 1_000_000)}`
  const leave = `my $child = fork; exec '/usr/bin/sleep', '${mark}' if defined $child and $child == 0; exit 0`
  const end = await runScript(await withScript(sandbox, leave))
  expect(end.exitCode).toBe(0)
  await expect.poll(() => processesWith(mark)).toEqual([])
})

eachSandbox('M23: complaints without an end are drained, and only their last part is kept', async (sandbox) => {
  const end = await runScript(await withScript(sandbox, 'print STDERR "x" x 20_000_000, "\\nthe end\\n"'))
  expect(end.exitCode).toBe(0)
  expect(end.stderr.length).toBe(64 * 1024)
  expect(end.stderr.endsWith('the end\n')).toBe(true)
})

eachSandbox('M25: a decoder that eats the processor ends at its limit', async (sandbox) => {
  const end = await runScript(await withScript(sandbox, 'while (1) {}'), { limits: { cpuS: 1, wallS: 60 } })
  expect(end).toMatchObject({ outOfTime: false, exitCode: 137 })
})

eachSandbox('M26: a decoder gets nothing of our environment', async (sandbox) => {
  process.env.REELGATE_TEST_SECRET = 'a secret'
  onTestFinished(() => {
    delete process.env.REELGATE_TEST_SECRET
  })
  const printed = await outputOf(await withScript(sandbox, 'print "$_=$ENV{$_}\\n" for keys %ENV'))
  expect(printed).toBe(sandbox.bubblewrap ? 'PWD=/tmp\n' : '')
})

eachSandbox('no file can be written', async (sandbox) => {
  const script = `$SIG{XFSZ} = 'IGNORE'; my $file = "/tmp/reelgate-written-$$";
    open(my $out, '>', $file) or die "no file: $!"; print $out 'x' and close $out or print "refused\n"; unlink $file`
  expect(await outputOf(await withScript(sandbox, script))).toBe('refused\n')
})

inBubblewrap('M24: there is no network, no file of the machine, no other program and no foreign process', async (sandbox) => {
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
  const script = `socket(my $s, 2, 1, 0) or print "no socket: ", $! + 0, "\\n"; connect($s, pack('Sna4x8', 2, ${port}, pack('C4', 127, 0, 0, 1))) and print "network\\n";
    for my $place ('/etc/passwd', '/proc', '/sys', '/root', '/home', '/work', '/usr/bin/sh', '/bin/sh', '/usr/share', '${process.execPath}') { -e $place and print "$place\\n" }
    print "processes ", join(' ', grep { kill 0, $_ } 1..300), "\\n"`
  expect(await outputOf(await withScript(sandbox, script))).toMatch(/^no socket: 1\nprocesses 1 2\n$/)
  expect(calls).toBe(0)
})

inBubblewrap('F-264: a source that is read in place is all that the network has, by TCP alone', async (sandbox) => {
  const canary = await openCanary()
  const script = `print "socket ", join(' ', map { socket(my $s, $_->[0], $_->[1], 0) ? 'made' : $! + 0 } [2, 1], [2, 2], [1, 1], [10, 1], [16, 3]), "\\n";
    for my $port (8080, ${canary.port}) { socket(my $s, 2, 1, 0); print "$port ", connect($s, pack('Sna4x8', 2, $port, pack('C4', 127, 0, 0, 1))) ? 'open' : 'closed', "\\n" }
    print "forked\\n" if defined fork; -e $_ and print "$_\\n" for '/proc', '/dev/pts', '/dev/shm', '/etc/passwd'`
  const blocks = { sizeBytes: 7, read: async () => Buffer.from('nothing'), [Symbol.asyncDispose]: async () => undefined }
  const output = collect(10_000)
  const key = Buffer.alloc(16)
  const source = { ...sealedSource('', { key, iv: key }, 7), openInPlace: async () => blocks }
  await runScript(await withScript(sandbox, script), { source, stdout: output.reader })
  expect(output.bytes().toString()).toBe(`socket made 1 1 1 1\n8080 open\n${canary.port} closed\n`)
  expect(canary.calls()).toBe(0)
})

inBubblewrap('M24: of a thousand forks none makes a process, and none is left', async (sandbox) => {
  const mark = `${1_000_000 + Math.floor(Math.random() * 1_000_000)}`
  const script = `my $made = 0; for (1..1000) { my $child = fork; next unless defined $child; exec '/usr/bin/sleep', '${mark}' if $child == 0; $made++ }
    my $limits = pack('q2', 0, 0); syscall(${process.arch === 'x64' ? 302 : 261}, 0, 6, 0, $limits); print "$made made, ", join(' ', unpack('q2', $limits)), " allowed\\n"`
  expect(await outputOf(await withScript(sandbox, script))).toBe('0 made, 1024 1024 allowed\n')
  await expect.poll(() => processesWith(mark)).toEqual([])
})

inBubblewrap('M24: a server that may start fewer processes than that still runs bubblewrap', async () => {
  const open = `const { openSandbox } = await import('${path.join(import.meta.dirname, '../../src/sandbox/bubblewrap.ts')}')
    console.log((await openSandbox()).problem)`
  const args = ['--nproc=1000', process.execPath, '--input-type=module', '-e', open]
  expect((await promisify(execFile)('prlimit', args)).stdout).toBe('undefined\n')
})

inBubblewrap('M24: the kernel refuses each listed system call with EPERM, and kills nothing', async (sandbox) => {
  const architecture = process.arch === 'x64' ? 'x64' : 'arm64'
  const numbers = Object.values(BLOCKED_CALLS).flatMap((call) => call[architecture] ?? [])
  const x32 = process.arch === 'x64' ? [0x40000000 + 39] : []
  const script = `for my $number (${[...numbers, ...x32].join(', ')}) { print "$number: ", syscall($number, 0, 0, 0, 0, 0, 0) == -1 ? $! + 0 : 'done', "\\n" }`
  expect(await outputOf(await withScript(sandbox, script))).toBe([...numbers, ...x32].map((number) => `${number}: 1\n`).join(''))
})

inBubblewrap(
  'M24: a program that transcribes may start others and write 1 GiB of its own; nothing else is there to write or to reach',
  async (sandbox) => {
    const printed = await outputOfProgram(
      sandbox,
      `sh -c 'echo started'
    for place in /etc/passwd /proc /sys /root /home /work; do [ -e "$place" ] && echo "$place"; done
    echo "$(dd if=/dev/zero of=/tmp/large bs=1M count=1100 2>/dev/null; stat -c %s /tmp/large)"
    rm /tmp/large; dd if=/dev/zero of=/dev/shm/large bs=1M count=100 2>/dev/null; stat -c %s /dev/shm/large
    for place in / /usr /dev "$(dirname "$0")"; do (echo x >"$place/written") 2>/dev/null && echo "wrote $place"; done
    unshare -U true 2>/dev/null && echo "new namespace"
    echo end`,
    )
    expect(printed).toBe(`started\n${2 ** 30}\n${2 ** 26}\nend\n`)
  },
)

inBubblewrap(
  'M29: an installation in a folder that such a program reads is hidden from it, under each name of the folder',
  async (sandbox) => {
    const parent = await mkdtemp('/usr/lib/reelgate-test-').catch(() => undefined)
    if (parent === undefined) return // this user may not write there
    onTestFinished(() => rm(parent, { recursive: true }))
    await mkdir(path.join(parent, 'data'))
    await writeFile(path.join(parent, 'data/reelgate.db'), 'a secret')
    await writeFile(path.join(parent, 'key'), 'a secret')
    const hidden = [path.join(parent, 'data'), path.join(parent, 'key'), path.join(parent, 'to-come')]
    const names = [parent, parent.replace('/usr', '')]
    const printed = await outputOfProgram(
      { ...sandbox, hidden },
      `${names.map((name) => `cat ${name}/data/* ${name}/key; ls ${name}`).join(' 2>/dev/null\n')} 2>/dev/null`,
    )
    expect(printed).toBe('data\nkey\n'.repeat(2))
  },
)

test.for(sampleOf('places of an installation', ['/usr/local', '/usr/src/app', '/opt', '/srv', '/home'], 1))(
  'M29: neither an installation nor its data nor its key in %s can be read inside',
  async (parent, { skip }) => {
    const { openSandbox, parts, database, key, dataDir } = await installIn(parent, skip)
    await expectUnreadable(await openSandbox({ dataDir, masterKeyFile: key }), [...parts, database, key], skip)
  },
)

// bubblewrap needs a second for the hundreds of libraries that it then mounts one by one.
const PARTS_OF_AN_INSTALLATION = ['its program', 'its data', 'its key'] as const
test.for(sampleOf('parts of an installation', PARTS_OF_AN_INSTALLATION, 1))(
  'M29: of an installation in a folder of ffmpeg’s own libraries %s is hidden, too, and ffmpeg works',
  async (part, { skip }) => {
    const parent = path.dirname(librariesIn((await promisify(execFile)('ldd', ['/usr/bin/ffmpeg'])).stdout)[0] ?? '')
    const { openSandbox: openInstalled, parts, database, key, dataDir } = await installIn(parent, skip)
    const { open, hidden } = {
      'its program': { open: () => openInstalled(), hidden: parts },
      'its data': { open: () => openSandbox({ dataDir }), hidden: [database] },
      'its key': { open: () => openSandbox({ masterKeyFile: key }), hidden: [key] },
    }[part]
    const sandbox = await open()
    await expectUnreadable(sandbox, hidden, skip)
    expect(await probeSource(sandbox, await seal(await makeSmallVideo()))).toMatchObject({ videoTrack: { widthPx: 160 } })
  },
)

test('M29: of a folder that holds what is hidden, or is in it, only the libraries are seen; of another the folder', async () => {
  const folder = await newFolder()
  for (const name of ['whole', 'mixed', 'mixed/data', 'home', 'home/lib']) await mkdir(path.join(folder, name))
  const at = (...names: string[]) => names.map((name) => path.join(folder, name))
  const libraries = at('whole/a.so', 'whole/b.so', 'mixed/c.so', 'home/lib/d.so')
  for (const library of libraries) await writeFile(library, '')
  const hidden = at('mixed/data/to/come', 'home')
  expect(visiblePaths(libraries, hidden)).toEqual(at('home/lib/d.so', 'mixed/c.so', 'whole'))
  expect(visiblePaths(libraries, ['/'])).toEqual(libraries.toSorted())
})

test('the loader’s list of libraries is read as it is printed; a program without one has none', () => {
  const listing =
    '\tlinux-vdso.so.1 (0x00007ffd)\n\tlibx.so.1 => /usr/lib/a b/libx.so.1 (0x00007f1c)\n\tliby.so => not found\n\t/lib64/ld-linux-x86-64.so.2 (0x7f)\n'
  expect(librariesIn(listing)).toEqual(['/usr/lib/a b/libx.so.1', '/lib64/ld-linux-x86-64.so.2'])
  expect(librariesIn('ffmpeg version 7.1 (static)\n')).toEqual([])
})

eachSandbox('F-04: after kill -9 of the server no ffmpeg runs on', async (sandbox) => {
  const video = await openVideo(await makeVideo({ seconds: 60, size: '640x360', audioTrack: false }))
  const server = spawn(process.execPath, [path.join(import.meta.dirname, 'encode-for-ever.ts')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  server.stdin.end(JSON.stringify({ ...video, sandbox, file: await fileOf(video.source) }))
  await once(server.stdout, 'data') // its first segment
  expect(await processesWith(video.source.keyHex)).not.toEqual([])
  server.kill('SIGKILL')
  await expect.poll(() => processesWith(video.source.keyHex)).toEqual([])
})

eachSandbox(
  'F-15: where too many files are open, ffmpeg does not start, which is not the video’s fault, and nothing is left of it',
  async (sandbox) => {
    const source = await seal(await makeSmallVideo())
    const script = path.join(import.meta.dirname, 'out-of-files.ts')
    const server = spawn('prlimit', ['--nofile=128', process.execPath, script], { stdio: ['pipe', 'pipe', 'inherit'] })
    server.stdin.end(JSON.stringify({ source, sandbox, file: await fileOf(source) }))
    const { outcomes, listeners } = JSON.parse(await text(server.stdout))
    const drawn = `0: ${(160 * 90 * 3) / 2} bytes`
    expect(outcomes.at(0)).toBe(drawn)
    expect(outcomes.at(1)).toBe('EMFILE')
    expect(new Set(outcomes)).toEqual(new Set([drawn, 'EMFILE']))
    expect(outcomes.at(-1)).toBe(drawn)
    expect(listeners).toBe(0)
  },
)

draw()

/** One test with bubblewrap, where this machine has it, and one without, of which a short run has a sample. */
function eachSandbox(name: string, body: (sandbox: Sandbox) => Promise<void>) {
  inBubblewrap(`${name} (bubblewrap)`, body)
  withoutIt(`${name} (without)`, async () => body(withoutBubblewrap(await openDefaultSandbox())))
}

function inBubblewrap(name: string, body: (sandbox: Sandbox) => Promise<void>) {
  test(name, async ({ skip }) => {
    const sandbox = await openDefaultSandbox()
    if (!sandbox.bubblewrap) skip()
    await body(sandbox)
  })
}

/** What a script of the shell prints, run as a program that transcribes is. */
async function outputOfProgram(sandbox: Sandbox, script: string): Promise<string> {
  const file = path.join(await newFolder(), 'program')
  await writeFile(file, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  const output = collect(10_000)
  const program = { path: file, files: [path.dirname(file)] }
  await runProgram(sandbox, { program, args: [], stdin: Readable.from([]), stdout: output.reader, limits: LIMITS })
  return output.bytes().toString()
}

/** A sandbox whose ffprobe is a script in Perl, which Debian always has, and which can become `sleep`. */
async function withScript(sandbox: Sandbox, script: string): Promise<Sandbox> {
  const file = path.join(await newFolder(), 'ffprobe')
  await writeFile(file, `#!/usr/bin/perl\n$| = 1; ${script}\n`)
  await chmod(file, 0o755)
  const { stdout } = await promisify(execFile)('ldd', ['/usr/bin/perl'])
  const isSeen = (library: string) =>
    sandbox.visible.some((location) => library === location || library.startsWith(`${location}/`))
  const libraries = librariesIn(stdout).filter((library) => !isSeen(library))
  const visible = [...sandbox.visible, ...libraries, '/usr/bin/perl', '/usr/bin/sleep', file]
  return { ...sandbox, tools: { ...sandbox.tools, ffprobe: file }, visible }
}

/** An installation, as far as its sandbox needs it, with data and key in the same folder. */
async function installIn(parent: string, skip: () => never) {
  const firstNew = await mkdir(parent, { recursive: true }).catch(skip) // this user may not install there
  const home = await mkdtemp(path.join(parent, 'reelgate-test-')).catch(skip)
  onTestFinished(() => rm(firstNew ?? home, { recursive: true }))
  const root = path.join(import.meta.dirname, '../..')
  const names = ['package.json', 'src/errors.ts', 'src/error-catalogue.ts', 'src/limit-bytes.ts']
  for (const name of await readdir(path.join(root, 'src/sandbox'))) names.push(`src/sandbox/${name}`)
  for (const name of names) await cp(path.join(root, name), path.join(home, name))
  const installed: typeof import('../../src/sandbox/bubblewrap.ts') = await import(path.join(home, 'src/sandbox/bubblewrap.ts'))
  const dataDir = path.join(home, 'data')
  const [database, key] = [path.join(dataDir, 'reelgate.db'), path.join(home, 'data.key')]
  await mkdir(dataDir)
  for (const file of [database, key]) await writeFile(file, 'a secret', { mode: 0o644 })
  return { openSandbox: installed.openSandbox, parts: names.map((name) => path.join(home, name)), dataDir, database, key }
}

async function expectUnreadable(sandbox: Sandbox, files: readonly string[], skip: () => never): Promise<void> {
  if (!sandbox.bubblewrap) skip()
  const locations = files.flatMap((file) => [file, file.replace(/^\/usr/, ''), `/usr${file}`]) // /lib leads to /usr/lib
  const look = `for my $file (qw(${locations.join(' ')})) { open(my $in, '<', $file) and print "$file: ", <$in> } print "done\\n"`
  expect(await outputOf(await withScript(sandbox, look))).toBe('done\n')
}

/** ffmpeg and what it is run with, but for bubblewrap. */
async function linkTools(folder: string): Promise<void> {
  for (const name of ['ffmpeg', 'ffprobe', 'prlimit']) await symlink(`/usr/bin/${name}`, path.join(folder, name))
}

/** Tools whose bubblewrap runs a line of shell first. */
async function newBubblewrap(line: string): Promise<{ folder: string; failing: string }> {
  const folder = await newFolder()
  await linkTools(folder)
  const file = path.join(folder, 'bwrap')
  await writeFile(file, `#!/bin/sh\n${line}\nexec /usr/bin/bwrap "$@"\n`, { mode: 0o755 })
  return { folder, failing: `${file}.failing` }
}

async function outputOf(scripted: Sandbox): Promise<string> {
  const output = collect(10_000)
  await runScript(scripted, { stdout: output.reader })
  return output.bytes().toString()
}

async function runScript(sandbox: Sandbox, run: Partial<Parameters<typeof runMedia>[1]> = {}) {
  const file = path.join(await newFolder(), 'source')
  await writeFile(file, 'nothing')
  const key = Buffer.alloc(16)
  return runMedia(sandbox, {
    tool: 'ffprobe',
    source: sealedSource(file, { key, iv: key }, 7),
    outputArgs: [],
    limits: LIMITS,
    ...run,
  })
}
