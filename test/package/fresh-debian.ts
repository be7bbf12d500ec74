import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { onTestFinished } from 'vitest'

const run = promisify(execFile)
const ARCHIVE = join(import.meta.dirname, '../../.cache/fresh-debian.tar')

/**
 * The oldest supported Debian in a folder for this test: systemd, what the package depends on, and nothing else but `more`. Fetched once:
 * remove the archive to fetch it again.
 */
export async function freshDebian(deb: string, ...more: string[]): Promise<string> {
  if (!existsSync(ARCHIVE)) await fetchDebian(['systemd', 'systemd-sysv', ...(await listDependencies(deb)), ...more])
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-debian-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await run('tar', ['--extract', '--numeric-owner', '--file', ARCHIVE, '--directory', folder])
  return folder
}

async function fetchDebian(packages: readonly string[]): Promise<void> {
  await mkdir(join(ARCHIVE, '..'), { recursive: true })
  const unfinished = ARCHIVE.replace('.tar', '-unfinished.tar')
  const options = ['--mode=root', '--variant=apt', '--quiet', '--aptopt=APT::Install-Recommends "false"']
  await run('mmdebstrap', [...options, `--include=${packages.join(',')}`, 'bookworm', unfinished], { maxBuffer: 16 << 20 })
  await rename(unfinished, ARCHIVE)
}

async function listDependencies(deb: string): Promise<string[]> {
  const { stdout } = await run('dpkg-deb', ['--field', deb, 'Depends'])
  return stdout.split(',').map((entry) => entry.trim().split(' ')[0] ?? '')
}
