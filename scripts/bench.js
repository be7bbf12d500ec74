// `npm run bench`: prints the table of docs/bench.md. `-- --json FILE` also writes it, `-- --only NAME` measures one row.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { root } from './run.js'

const start = (command, args) => spawnSync(command, args, { cwd: root, stdio: 'inherit' }).status ?? 1

process.exitCode =
  start(process.execPath, [join(root, 'scripts/prepare.js'), 'bench']) ||
  start(join(root, 'node_modules/.bin/node'), [join(root, 'bench/main.ts'), ...process.argv.slice(2)])
