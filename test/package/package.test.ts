import { execFile } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { copyFile, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { makeVideo } from '../videos.ts'
import { bootMachine, type Machine } from './machine.ts'

const runHere = promisify(execFile)
const ROOT = join(import.meta.dirname, '../..')
const ARCHITECTURE = process.arch === 'arm64' ? 'arm64' : 'amd64'
let deb = ''

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-debs-'))
  const args = [join(ROOT, 'scripts/package.js'), ARCHITECTURE, '--to', folder, '--compression', 'none']
  const { stderr } = await runHere(process.execPath, args)
  deb = stderr.trim().split('\n').at(-1) ?? ''
  return () => rm(folder, { recursive: true })
})

test('the package is installed, serves, plays a video, and leaves the data when it is purged', async () => {
  const machine = await bootMachine()
  await copyFile(deb, join(machine.sharedFolder, 'reelgate.deb'))
  await copyFile(await makeVideo(), join(machine.sharedFolder, 'lesson.mp4'))

  expect(await succeed(machine, 'dpkg', '-i', '/mnt/reelgate.deb')).toContain('systemctl enable --now reelgate')
  await succeed(machine, 'systemctl', 'enable', '--now', 'reelgate')
  const ready = () => machine.get('http://127.0.0.1:8080/readyz')
  await expect.poll(ready).toContain('"sandbox":"ok"')

  // The journal is stored and shipped, so the secrets are not in it but behind commands.
  const journal = await succeed(machine, 'journalctl', '--unit=reelgate', '--no-pager', '--output=cat')
  const [, accountId = ''] = /reelgate key create ([0-9a-f]{32})/.exec(journal) ?? []
  expect(journal).not.toMatch(/API secret {2}|^ *1\. /m)
  expect(await succeed(machine, 'reelgate', 'key', 'create', accountId)).toMatch(/[A-Za-z0-9]{64}/)
  const phrase = await succeed(machine, 'reelgate', 'key', 'phrase')
  expect(phrase.match(/[a-z]{3,}/g)?.length).toBeGreaterThanOrEqual(24)
  for (const line of phrase.trim().split('\n')) expect(journal).not.toContain(line)

  // Encoded in the sandbox, under the unit's restrictions.
  const watch = JSON.parse(await succeed(machine, 'reelgate', 'try', '--json', '/mnt/lesson.mp4'))
  expect(await machine.get(watch.watchUrl)).toContain('<html')
  expect(await succeed(machine, 'reelgate', 'doctor')).not.toMatch(/^(trouble|warning) +(?!backup\b)\S/m)

  await succeed(machine, 'systemctl', 'restart', 'reelgate')
  await expect.poll(ready).toContain('"status":"ready"')
  // Debian 12's records say /lib of what is in /usr/lib.
  const owners = await succeed(
    machine,
    'stat',
    '--format=%U %a %n',
    '/var/lib/reelgate',
    '/var/lib/reelgate/data.key',
    '/etc/default/reelgate',
  )
  expect(owners.trim().split('\n')).toEqual([
    'reelgate 700 /var/lib/reelgate',
    'reelgate 600 /var/lib/reelgate/data.key',
    'root 640 /etc/default/reelgate',
  ])

  expect(await succeed(machine, 'dpkg', '--purge', 'reelgate')).toContain('are still in /var/lib/reelgate')
  await succeed(machine, 'test', '-f', '/var/lib/reelgate/data/reelgate.db')
  expect(await ready()).toBeUndefined()
  await succeed(machine, 'sh', '-c', '! test -e /usr/lib/reelgate && ! test -e /etc/default/reelgate')
})

test('a newer package replaces an older one: the service restarts with the same data', async () => {
  const machine = await bootMachine()
  await copyFile(deb, join(machine.sharedFolder, 'old.deb'))
  await repack(deb, '9.9.9', join(machine.sharedFolder, 'new.deb'))
  await succeed(machine, 'dpkg', '--install', '/mnt/old.deb')
  await succeed(machine, 'sh', '-c', 'echo REELGATE_DEMO=off >> /etc/default/reelgate')
  await succeed(machine, 'systemctl', 'enable', '--now', 'reelgate')
  const ready = () => machine.get('http://127.0.0.1:8080/readyz')
  await expect.poll(ready).toContain('"status":"ready"')
  const state = async () => ({
    accounts: await succeed(machine, 'reelgate', 'account', 'list'),
    process: await succeed(machine, 'systemctl', 'show', '--property=MainPID', 'reelgate'),
  })
  const before = await state()

  await succeed(machine, 'dpkg', '--install', '/mnt/new.deb')
  await expect.poll(ready).toContain('"status":"ready"')
  const after = await state()
  expect(after.accounts).toBe(before.accounts)
  expect(after.process).not.toBe(before.process)
  expect(await succeed(machine, 'cat', '/etc/default/reelgate')).toContain('REELGATE_DEMO=off')
})

test('the unit leaves little of the machine exposed: systemd rates it 4.0 or less', async () => {
  const unit = join(ROOT, 'packaging/debian/reelgate.service')
  // It exits with 1 above the threshold, which is in tenths.
  await runHere('systemd-analyze', ['security', '--offline=true', '--threshold=40', '--no-pager', unit])
})

test('the package depends on every library that its programs load', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-unpacked-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await runHere('dpkg-deb', ['--extract', deb, folder])
  const home = join(folder, 'usr/lib/reelgate')
  const prebuilds = join(home, 'node_modules/better-sqlite3/prebuilds')
  const programs = [join(home, 'node/bin/node'), ...(await readdir(prebuilds)).map((file) => join(prebuilds, file))]
  const listing = (await runHere('ldd', programs)).stdout
  const libraries = [...listing.matchAll(/ => (\/\S+)/g)].map(([, file = '']) => realpathSync(file))
  const owners = await Promise.all(
    [...new Set(libraries)].map(async (file) => (await runHere('dpkg', ['--search', `*${file.replace(/^\/usr/, '')}`])).stdout),
  )
  const depends = (await runHere('dpkg-deb', ['--field', deb, 'Depends'])).stdout
    .split(',')
    .map((entry) => entry.trim().split(' ')[0])
  expect(libraries).not.toEqual([])
  for (const owner of owners) expect(depends).toContain(owner.split(':')[0])
})

/** The same package under another version. */
async function repack(from: string, version: string, to: string) {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-repacked-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const tree = join(folder, 'tree')
  await runHere('dpkg-deb', ['--raw-extract', from, tree])
  const control = join(tree, 'DEBIAN/control')
  await writeFile(control, (await readFile(control, 'utf8')).replace(/^Version: .*$/m, `Version: ${version}`))
  await runHere('dpkg-deb', ['--root-owner-group', '-Znone', '--build', tree, to])
}

async function succeed(machine: Machine, program: string, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await machine.run(program, ...args)
  expect(code, `${program} ${args.join(' ')}: ${stderr}`).toBe(0)
  return stdout
}
