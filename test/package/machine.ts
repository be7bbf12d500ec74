import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, readlink, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished } from 'vitest'
import { readAnswer } from '../raw-http.ts'

/** A Debian, booted under systemd over a layer of its own, with a network of its own. Only its folder changes. */
export type Machine = {
  /** A folder that programs in the machine see as /mnt. */
  sharedFolder: string
  /** Runs a program as root in it. */
  run(program: string, ...args: string[]): Promise<{ code: number; stdout: string; stderr: string }>
  /** Requests a URL from its network. @returns the body; undefined when there is no connection or an error status */
  get(url: string): Promise<string | undefined>
  /** Writes a program that starts one of this machine's own in its network, such as a browser. @returns the path */
  inItsNetwork(program: string): Promise<string>
}

/**
 * Boots a machine for this test; it is killed when the test has finished.
 * @param root where its Debian is: this machine's own, or another one
 */
export async function bootMachine(root = '/'): Promise<Machine> {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-machine-'))
  const sharedFolder = join(folder, 'shared')
  await mkdir(sharedFolder)
  const boot = spawn('sh', [join(import.meta.dirname, 'boot.sh'), folder, root], { stdio: ['ignore', 'ignore', 'pipe'] })
  onTestFinished(async () => {
    boot.kill('SIGKILL') // its namespaces end with it, and all mounts with them
    if (boot.exitCode === null && boot.signalCode === null) await once(boot, 'exit')
    await rm(folder, { recursive: true })
  })
  let problems = ''
  boot.stderr.setEncoding('utf8').on('data', (text: string) => {
    problems += text
  })
  let init = 0
  await expect.poll(async () => (init = await findInit(boot, problems))).toBeGreaterThan(0)
  const run: Machine['run'] = (...command) =>
    new Promise((resolve) => {
      const args = [
        '--target',
        String(init),
        '--mount',
        '--uts',
        '--ipc',
        '--net',
        '--pid',
        '--cgroup',
        '--root',
        '--wd',
        ...command,
      ]
      const child = execFile('nsenter', args, { env: ENVIRONMENT, maxBuffer: 16 << 20 }, (_, stdout, stderr) =>
        resolve({ code: child.exitCode ?? -1, stdout, stderr }),
      )
    })
  // `degraded`: of this machine's own units some do not run in a namespace.
  await expect
    .poll(async () => (await run('systemctl', 'is-system-running')).stdout, { interval: 250 })
    .toMatch(/^(running|degraded)/)
  const get: Machine['get'] = async (url) => {
    const { hostname, port, host, pathname } = new URL(url)
    const request = `GET ${pathname} HTTP/1.1\\r\\nHost: ${host}\\r\\nConnection: close\\r\\n\\r\\n`
    // bash connects in a fiftieth of the time that another Node would take, and tests ask until a server is ready.
    const script = `exec 3<>/dev/tcp/${hostname}/${port} && printf '${request}' >&3 && cat <&3`
    const connect = runHere('nsenter', ['--target', String(init), '--net', 'bash', '-c', script], { encoding: 'buffer' })
    const answer = readAnswer((await connect.catch(() => ({ stdout: Buffer.alloc(0) }))).stdout)
    return answer.status === 200 ? answer.text : undefined
  }
  const inItsNetwork: Machine['inItsNetwork'] = async (program) => {
    const path = join(folder, basename(program))
    await writeFile(path, `#!/bin/sh\nexec nsenter --target ${init} --net ${program} "$@"\n`, { mode: 0o755 })
    return path
  }
  return { sharedFolder, run, get, inItsNetwork }
}

const runHere = promisify(execFile)
const ENVIRONMENT = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' }

/** The process id of the machine's systemd; 0 until it runs. @throws Error when the boot has failed */
async function findInit(boot: ChildProcess, problems: string): Promise<number> {
  if (boot.exitCode !== null) throw new Error(`The machine did not boot: ${problems}`)
  const children = await readFile(`/proc/${boot.pid}/task/${boot.pid}/children`, 'utf8')
  const init = Number(children.trim())
  if (init === 0) return 0
  const program = await readlink(`/proc/${init}/exe`)
  return program.endsWith('/systemd') ? init : 0
}
