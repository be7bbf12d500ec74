import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { readSteps } from './docs/steps.ts'
import { findFreePort } from './free-port.ts'
import type { Reached } from './postgres/cluster.ts'

/** Debian's, as scripts/prepare.js has unpacked it. */
const PROGRAM = join(import.meta.dirname, '../.cache/haproxy/usr/sbin/haproxy')

/**
 * HAProxy in front of a primary and its standby, as docs/operations.md sets it up.
 * @returns the address of a database through it
 */
export async function startHaproxy(
  primary: Pick<Reached, 'url'>,
  standby: Pick<Reached, 'url'>,
): Promise<(databaseUrl: string) => string> {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-haproxy-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const { username, password } = new URL(primary.url)
  const port = await findFreePort()
  const steps = (await readSteps('A standby for PostgreSQL')).flatMap(({ lines }) => lines ?? [])
  const linesOf = (file: string) => steps.find((lines) => lines.file === file)?.text.replaceAll('/etc/haproxy', folder) ?? ''
  const servers = [primary, standby].map(({ url }, n) => `  server number-${n} 127.0.0.1:${new URL(url).port}\n`).join('')
  const configuration = linesOf('/etc/haproxy/haproxy.cfg')
    .replace(/^ *server .*\n/gm, '')
    .replace(/^ *(user|group|log) .*\n/gm, '')
    .replace('127.0.0.1:6432', `127.0.0.1:${port}`)
  await writeFile(join(folder, 'haproxy.cfg'), configuration + servers)
  await writeFile(join(folder, 'pgpass'), `*:*:*:${username}:${decodeURIComponent(password)}\n`, { mode: 0o600 })
  await writeFile(join(folder, 'is-primary'), linesOf('/etc/haproxy/is-primary'))
  await chmod(join(folder, 'is-primary'), 0o755)
  const child = spawn(PROGRAM, ['-db', '-f', join(folder, 'haproxy.cfg')], { stdio: ['ignore', 'ignore', 'pipe'] })
  let output = ''
  child.stderr.on('data', (text) => {
    output += text
  })
  const ended = once(child, 'exit')
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
  })
  while (!(await accepts(port))) {
    if (child.exitCode !== null) throw new Error(`HAProxy did not start: ${output}`)
  }
  return (databaseUrl) => Object.assign(new URL(databaseUrl), { hostname: '127.0.0.1', port: String(port) }).href
}

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
