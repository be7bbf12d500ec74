import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { realpathSync } from 'node:fs'
import { copyFile, cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { HEADLESS_SHELL, startChromiumAt } from '../browser/chromium.ts'
import { openPlayer } from '../browser/player.ts'
import { makeCertificate } from '../certificate.ts'
import { fillIn, readSteps, type Step } from '../docs/steps.ts'
import { isLong } from '../seeded-random.ts'
import { makeVideo } from '../videos.ts'
import { freshDebian } from './fresh-debian.ts'
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

/** Each look starts a program in the machine. */
const RARELY = { interval: 500 }

const OWN = 'this machine’s own Debian'
const FRESH = 'a fresh Debian that has only what the package depends on'

test.each(isLong ? [OWN, FRESH] : [OWN])(
  'F-37: the steps of docs/operations.md, followed on %s, install, serve over TLS, send alerts, back up, upgrade, roll back and restore; a purge leaves the data',
  async (kind) => {
    const machine = await bootMachine(kind === FRESH ? await freshDebian(deb, 'nginx') : '/')
    const operator = await newOperator(machine)
    const { follow, succeed, listVideos, ready } = operator

    const [install, address, start, secrets, , check] = await readSteps('Install on Debian and Ubuntu')
    expect(await follow([install])).toContain('systemctl enable --now reelgate')
    await follow([address, start])
    await expect.poll(ready, RARELY).toContain('"sandbox":"ok"')

    // The journal is stored and shipped, so the secrets are not in it but behind commands.
    const journal = await succeed('journalctl', '--unit=reelgate', '--no-pager', '--output=cat')
    operator.names.ACCOUNT_ID = /reelgate key create ([0-9a-f]{32})/.exec(journal)?.[1] ?? ''
    expect(journal).not.toMatch(/API secret {2}|^ *1\. /m)
    const shown = await follow([secrets])
    operator.names.SECRET = /\b[A-Za-z0-9]{64}\b/.exec(shown)?.[0] ?? ''
    const words = Array.from(shown.matchAll(/^ +\d+ ([a-z]+)\b.*$/gm), ([line]) => line)
    expect(words.length).toBeGreaterThan(0)
    for (const line of words) expect(journal).not.toContain(line)

    await operator.prepareTls()
    await follow(await readSteps('TLS and a reverse proxy'))
    await expect.poll(ready, RARELY).toContain('"status":"ready"')
    // The video is encoded in the sandbox, under the unit's restrictions.
    const checked = await follow([check])
    expect(checked).not.toMatch(/^(trouble|warning) +(?!backup\b)\S/m)
    for (const line of ['public address', 'upload size', 'certificate', 'clock', 'proxy'])
      expect(checked).toMatch(new RegExp(`^ok +${line} `, 'm'))
    const [watchUrl = ''] = /https:\/\/video\.example\.org\/player\/\S+/.exec(checked) ?? []
    await operator.watch(watchUrl)
    expect((await succeed('stat', '--format=%U %a %n', ...OWNED)).trim().split('\n')).toEqual([
      'reelgate 700 /var/lib/reelgate',
      'reelgate 600 /var/lib/reelgate/data.key',
      'root 640 /etc/default/reelgate',
    ])

    const mails = await operator.startMailServer()
    expect(await follow(await readSteps('Alerts by e-mail'))).toContain('queued as 4711')
    await expect.poll(mails).toMatch(/^To: operator@example\.org\r?$/m)
    await expect.poll(ready).toContain('"status":"ready"')

    await follow(await readSteps('Back up and restore', 'To back up'))
    await succeed('cp', '/var/lib/reelgate/data.key', '/mnt/data.key')
    const videos = await listVideos()
    expect(JSON.parse(videos)).toMatchObject({ count: 1, rows: [{ status: 'ready' }] })
    const accounts = await succeed('reelgate', 'account', 'list')

    // A newer version with one more migration.
    const process = () => succeed('systemctl', 'show', '--property=MainPID', 'reelgate')
    const before = await process()
    await follow(await readSteps('Upgrade and roll back', 'To upgrade'))
    await expect.poll(ready, RARELY).toContain('"status":"ready"')
    expect(await process()).not.toBe(before)
    expect(await succeed('reelgate', 'account', 'list')).toBe(accounts)
    expect(await succeed('cat', '/etc/default/reelgate')).toContain('REELGATE_PUBLIC_URL=https://video.example.org')
    const log = () => succeed('journalctl', '--unit=reelgate', '--no-pager', '--output=cat')
    expect(await log()).toMatch(
      /stop the server, run this command, and install that version afterwards: reelgate restore \S+ --rows/,
    )

    // Without the rows of before, the older version refuses.
    await succeed('apt', 'install', '--allow-downgrades', '/mnt/old.deb')
    await expect
      .poll(log, RARELY)
      .toMatch(/^The database was made by a newer version of Reelgate \(it has the migration 9999-later\)\./m)
    if (isLong) await succeed('apt', 'install', '/mnt/new.deb')
    await follow(await readSteps('Upgrade and roll back', 'To roll back'))
    await expect.poll(ready, RARELY).toContain('"status":"ready"')
    expect(await listVideos()).toBe(videos)

    const [key, proof, media, removal] = await readSteps('Back up and restore', 'To prove that a restore works')
    await follow([key, proof, media && { ...media, commands: media.commands.slice(0, 1) }])
    await operator.serveFor(media?.commands[1] ?? '', 'http://127.0.0.1:8090/readyz')
    await follow([removal])

    const [stop, putKey, restore, startAgain, resume] = await readSteps('Back up and restore', 'To restore')
    await follow([stop])
    await succeed('rm', '/var/lib/reelgate/data.key')
    expect(await follow([putKey, restore])).toMatch(/1 videos, \d+ files, each verified by the checksum of the backup/)
    await follow([startAgain])
    await expect.poll(ready, RARELY).toContain('"webhooks":"held"')
    await follow([resume])
    await expect.poll(ready, RARELY).not.toContain('held')
    expect(await listVideos()).toBe(videos)
    await operator.watch(await operator.newWatchUrl())

    expect(await succeed('dpkg', '--purge', 'reelgate')).toContain('are still in /var/lib/reelgate')
    await succeed('test', '-f', '/var/lib/reelgate/data/reelgate.db')
    expect(await ready()).toBeUndefined()
    await succeed('sh', '-c', '! test -e /usr/lib/reelgate && ! test -e /etc/default/reelgate')
  },
  3_600_000, // the fresh Debian is fetched first
)

const OWNED = ['/var/lib/reelgate', '/var/lib/reelgate/data.key', '/etc/default/reelgate']
const SITE = 'https://video.example.org'
const CERTIFICATE = '/etc/ssl/certs/video.example.org.pem'

/** An operator of a machine: root, with the packages and a video in the working directory, who answers yes to apt. */
async function newOperator(machine: Machine) {
  await copyFile(deb, join(machine.sharedFolder, 'old.deb'))
  await makeNewer(deb, join(machine.sharedFolder, 'new.deb'))
  await copyFile(await makeVideo(), join(machine.sharedFolder, 'video.mp4'))
  const names: Record<string, string> = {
    'reelgate_VERSION_amd64.deb': 'old.deb',
    'reelgate_OLD_amd64.deb': 'old.deb',
    'apt install nginx': 'command -v nginx', // there is no network to install it from
  }

  async function succeed(program: string, ...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await machine.run(program, ...args)
    expect(code, `${program} ${args.join(' ')}: ${stdout}${stderr}`).toBe(0)
    return stdout
  }
  const shell = (command: string) => succeed('sh', '-c', `cd /mnt && ${command}`)
  const append = (text: string, file: string) => succeed('sh', '-c', 'printf %s "$0" >> "$1"', text, file)

  /** Does what the steps say. @returns what their commands printed */
  async function follow(steps: readonly (Step | undefined)[]): Promise<string> {
    let printed = ''
    for (const step of steps) {
      if (!step) throw new Error('docs/operations.md has fewer steps than this test follows')
      if (step.lines) await append(step.lines.text, step.lines.file)
      for (const command of step.commands) printed += await shell(fillIn(command, names))
    }
    return printed
  }

  async function installNginx() {
    await cp(join(ROOT, '.cache/nginx/usr/sbin/nginx'), join(machine.sharedFolder, 'nginx'))
    await succeed('install', '/mnt/nginx', '/usr/sbin/nginx')
    await succeed('mkdir', '--parents', '/etc/nginx/conf.d', '/var/log/nginx', '/var/lib/nginx')
    await append('events {}\nhttp { include conf.d/*.conf; }\n', '/etc/nginx/nginx.conf')
    const unit = 'Type=forking\nExecStart=/usr/sbin/nginx\nExecReload=/usr/sbin/nginx -s reload'
    await append(`[Service]\n${unit}\n`, '/etc/systemd/system/nginx.service')
  }

  await append('APT::Get::Assume-Yes "true";\n', '/etc/apt/apt.conf.d/99yes')
  await append('127.0.0.1 video.example.org mail.example.org\n', '/etc/hosts')
  const { key, cert, ...files } = makeCertificate('DNS:video.example.org,DNS:mail.example.org')
  await succeed('mkdir', '--parents', '/backup')
  const node = `NODE_EXTRA_CA_CERTS=${CERTIFICATE} /usr/lib/reelgate/node/bin/node`
  const request = (method: string, path: string) => shell(`${node} --eval '${REQUEST}' ${method} ${SITE}${path} ${names.SECRET}`)

  return {
    names,
    succeed,
    async follow(steps: readonly (Step | undefined)[]) {
      const printed = await follow(steps)
      names['reelgate_VERSION_amd64.deb'] = 'new.deb' // the next one that is installed
      return printed
    },
    ready: () => machine.get('http://127.0.0.1:8080/readyz'),
    listVideos: () => request('GET', '/api/videos'),
    async newWatchUrl() {
      const { rows } = JSON.parse(await request('GET', '/api/videos'))
      const { otp } = JSON.parse(await request('POST', `/api/videos/${rows[0].id}/otp`))
      return `${SITE}/player/?otp=${otp}`
    },
    /** Its certificate, and nginx where there is none. */
    async prepareTls() {
      await writeFile(join(machine.sharedFolder, 'key.pem'), key)
      await writeFile(join(machine.sharedFolder, 'certificate.pem'), cert)
      await succeed('install', '-D', '/mnt/key.pem', '/etc/ssl/private/video.example.org.key')
      await succeed('install', '-D', '--mode=644', '/mnt/certificate.pem', CERTIFICATE)
      await append(`NODE_EXTRA_CA_CERTS=${CERTIFICATE}\n`, '/etc/default/reelgate')
      if ((await machine.run('test', '-e', '/lib/systemd/system/nginx.service')).code !== 0) await installNginx()
      await succeed('systemctl', 'start', 'nginx')
      // nginx loses a signal that reaches it before it has a worker, and the steps reload it.
      const findWorker = 'grep -aqs "^nginx: worker" /proc/[0-9]*/cmdline'
      await expect.poll(async () => (await machine.run('sh', '-c', findWorker)).code, RARELY).toBe(0)
    },
    /** Starts the mail server of the steps. @returns the mails that it has got */
    async startMailServer() {
      const program = await machine.inItsNetwork(process.execPath)
      const server = spawn(program, [join(import.meta.dirname, 'mail-server.ts'), files.keyFile, files.file])
      onTestFinished(() => void server.kill())
      let printed = ''
      server.stdout.setEncoding('utf8').on('data', (text: string) => {
        printed += text
      })
      await once(server.stdout, 'data')
      return () => printed
    },
    /** Opens the page of a video, in the long run in Chromium, which plays the video to its end. */
    async watch(url: string) {
      if (!isLong) return expect(await shell(`${node} --eval '${REQUEST}' GET '${url}'`)).toContain('<html')
      const program = await machine.inItsNetwork(HEADLESS_SHELL)
      const browser = await startChromiumAt(
        program,
        '--host-resolver-rules=MAP video.example.org 127.0.0.1',
        '--ignore-certificate-errors',
      )
      onTestFinished(() => browser.close())
      const player = await openPlayer(await browser.newContext({ ignoreHTTPSErrors: true }), `${url}&autoplay=true&muted=true`)
      await player.until(({ ended }) => ended)
    },
    /** Runs a command until the server answers at this URL, then ends it with Ctrl-C. */
    async serveFor(command: string, url: string) {
      const serving = machine.run('sh', '-c', `cd /mnt && echo $$ > /run/serving && exec env ${command}`)
      await expect.poll(() => machine.get(url), RARELY).toContain('"status":"ready"')
      await shell('kill -INT $(cat /run/serving)')
      expect(await serving).toMatchObject({ code: 0 })
    },
  }
}

const REQUEST = `const [method, url, key] = process.argv.slice(1);
  const body = method === "POST" ? "{}" : undefined;
  const headers = { ...(key && { Authorization: "Apisecret " + key }), ...(body && { "Content-Type": "application/json" }) };
  fetch(url, { method, headers, body }).then(async (r) => { process.exitCode = r.ok ? 0 : 1; process.stdout.write(await r.text()) })`.replaceAll(
  '\n',
  ' ',
)

test('the unit leaves little of the machine exposed: systemd rates it 4.0 or less', async () => {
  const unit = join(ROOT, 'packaging/debian/reelgate.service')
  // It exits with 1 above the threshold, which is in tenths.
  await runHere('systemd-analyze', ['security', '--offline=true', '--threshold=40', '--no-pager', unit])
})

test('each protection that systemd misses in the unit has the reason there why it is left out', async () => {
  const unit = await readFile(join(ROOT, 'packaging/debian/reelgate.service'), 'utf8')
  const reasons = unit.match(/^# .*$/gm)?.join('\n') ?? ''
  const args = ['security', '--offline=true', '--no-pager', join(ROOT, 'packaging/debian/reelgate.service')]
  const { stdout } = await runHere('systemd-analyze', args)
  const missed = Array.from(stdout.matchAll(/^✗ (\w+=)(?:~(@?\w+))?/gmu), ([, setting = '', part]) => [setting, part])
  expect(missed).not.toEqual([])
  for (const [setting = '', part = ''] of missed) {
    expect(reasons, `${setting}${part}`).toContain(setting)
    if (setting !== 'RestrictNamespaces=') expect(reasons).toContain(part)
  }
})

test('the package depends on every library that its programs load', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-unpacked-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await runHere('dpkg-deb', ['--extract', deb, folder])
  const home = join(folder, 'usr/lib/reelgate')
  const prebuilds = join(home, 'node_modules/better-sqlite3/prebuilds')
  const programs = [join(home, 'node/bin/node'), ...(await readdir(prebuilds)).map((file) => join(prebuilds, file))]
  const listing = (await runHere('ldd', programs)).stdout
  // Debian 12's records say /lib of what is in /usr/lib.
  const libraries = [...listing.matchAll(/ => (\/\S+)/g)].map(([, file = '']) => realpathSync(file).replace(/^\/usr/, ''))
  const found = (await runHere('dpkg', ['--search', ...new Set(libraries.map((file) => `*${file}`))])).stdout.split('\n')
  const depends = (await runHere('dpkg-deb', ['--field', deb, 'Depends'])).stdout
    .split(',')
    .map((entry) => entry.trim().split(' ')[0])
  expect(libraries).not.toEqual([])
  for (const file of libraries) expect(depends).toContain(found.find((line) => line.endsWith(file))?.split(':')[0])
})

/** The package as a later version would be, with one more migration. */
async function makeNewer(from: string, to: string) {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-newer-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const tree = join(folder, 'tree')
  await runHere('dpkg-deb', ['--raw-extract', from, tree])
  await change(join(tree, 'DEBIAN/control'), /^Version: .*$/m, 'Version: 9.9.9')
  const server = join(tree, 'usr/lib/reelgate/dist/server')
  const chunk = (await readdir(server)).find((name) => /^migrations-.*\.js$/.test(name)) ?? ''
  const later = 'async up(db) { await db.schema.createTable("later").addColumn("id", "integer").execute() }'
  await change(join(server, chunk), /(?="0001-tables": )/, `"9999-later": { ${later} },\n`)
  await runHere('dpkg-deb', ['--root-owner-group', '-Znone', '--build', tree, to])
}

async function change(file: string, pattern: RegExp, replacement: string) {
  const text = await readFile(file, 'utf8')
  expect(text, file).toMatch(pattern)
  await writeFile(file, text.replace(pattern, replacement))
}
