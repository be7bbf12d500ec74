import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { findFreePort } from '../../free-port.ts'

const PROGRAM = join(import.meta.dirname, '../../../.cache/pgbouncer/usr/sbin/pgbouncer')
const UNPRIVILEGED_ID = 65_534

/** Debian's PgBouncer in front of a database. @returns the address of the database through it */
export async function startPooler(databaseUrl: string, mode: 'session' | 'transaction'): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-pooler-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const url = new URL(databaseUrl)
  const port = await findFreePort()
  const settings = {
    ...{ listen_addr: '127.0.0.1', listen_port: port, unix_socket_dir: '', pool_mode: mode, default_pool_size: 40 },
    ...{ auth_type: 'plain', auth_file: join(folder, 'users') },
  }
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`)
  const target = `* = host=${url.hostname} port=${url.port}`
  await writeFile(join(folder, 'ini'), ['[databases]', target, '[pgbouncer]', ...lines, ''].join('\n'))
  await writeFile(settings.auth_file, `"${url.username}" "${decodeURIComponent(url.password)}"\n`)
  const isRoot = process.getuid?.() === 0
  if (isRoot) await chown(folder, UNPRIVILEGED_ID, UNPRIVILEGED_ID)
  const child = spawn(PROGRAM, [...(isRoot ? ['-u', 'nobody'] : []), join(folder, 'ini')], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const ended = once(child, 'exit')
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
  })
  for await (const text of child.stderr) if (String(text).includes('process up')) break
  return Object.assign(url, { hostname: '127.0.0.1', port: String(port) }).href
}
