import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { grantWishes } from '../namespace/wishes.ts'

// The process that holds a world (network-namespace.ts): it runs in the world's network and mount namespaces, and ends with the test's process.
// `unshare --net --mount node server-in-namespace.ts FOLDER`

const [folder = ''] = process.argv.slice(2)

/** Whose name server every program of the world asks. */
const NAME_SERVER = '9.9.9.9'
const FILES = {
  '/etc/resolv.conf': `nameserver ${NAME_SERVER}\noptions timeout:1 attempts:1\n`,
  '/etc/hosts': '127.0.0.1 localhost\n::1 localhost\n',
  '/etc/nsswitch.conf': 'hosts: files dns\n',
}

for (const [path, text] of Object.entries(FILES)) {
  const ours = join(folder, path.replaceAll('/', '_'))
  writeFileSync(ours, text)
  execFileSync('mount', ['--bind', ours, path])
}
// Every address there is belongs to this machine's loopback, so anything can be dialled, listened on, and nothing gets out.
const COMMANDS = [
  ...['link set lo up', 'addr add 8.8.4.4/32 dev lo', '-6 addr add 2a00:1450::4/128 dev lo'],
  ...['route add local default dev lo', '-6 route add local default dev lo'],
]
for (const command of COMMANDS) execFileSync('ip', command.split(' '))

grantWishes(folder)
