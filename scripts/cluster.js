// `node scripts/cluster.js [--servers 1] [--workers 2] [--trusted] [--database postgres] [--storage bucket] [--encoders 0]`, as root: an
// installation of several machines in network namespaces of this one, until Ctrl-C.
import { spawn, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { NODE, root } from './run.js'

const prepared = spawnSync(process.execPath, [join(root, 'scripts/prepare.js'), 'test'], { cwd: root, stdio: 'inherit' })
if (prepared.status === 0) {
  const child = spawn(NODE, [join(root, 'test/cluster/main.ts'), ...process.argv.slice(2)], { cwd: root, stdio: 'inherit' })
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal))
  child.on('exit', (code) => {
    process.exitCode = code ?? 1
  })
} else process.exitCode = 1
