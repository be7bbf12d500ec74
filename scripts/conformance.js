// `npm run conformance -- --base URL --key SECRET`: checks whether an installation keeps the wire contract.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { root } from './run.js'

const start = (command, args) => spawnSync(command, args, { cwd: root, stdio: 'inherit' }).status ?? 1

process.exitCode =
  start(process.execPath, [join(root, 'scripts/prepare.js'), 'conformance']) ||
  start(join(root, 'node_modules/.bin/node'), [join(root, 'conformance/main.ts'), ...process.argv.slice(2)])
