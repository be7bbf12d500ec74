import { execFileSync } from 'node:child_process'
import { grantWishes } from '../namespace/wishes.ts'

// The process that holds the network of a machine (network.ts): `unshare --net node machine-in-namespace.ts FOLDER`

execFileSync('ip', ['link', 'set', 'lo', 'up'])
grantWishes(process.argv[2] ?? '')
