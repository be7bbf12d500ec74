import { parseArgs } from 'node:util'
import { type Part, startCluster } from './cluster.ts'

// `node scripts/cluster.js`: a cluster by hand, until Ctrl-C.

const { values } = parseArgs({
  options: {
    servers: { type: 'string', default: '1' },
    workers: { type: 'string', default: '2' },
    trusted: { type: 'boolean', default: false },
    database: { type: 'string', default: 'sqlite' },
    storage: { type: 'string', default: 'folder' },
    encoders: { type: 'string', default: '0' },
    limits: { type: 'string', default: 'off' },
  },
})

const names = (kind: string, count: string) => Array.from({ length: Number(count) }, (_, index) => `${kind}-${index + 1}`)
const parts: Part[] = [
  ...(values.database === 'postgres' ? [{ kind: 'database', name: 'database' } as const] : []),
  ...(values.storage === 'bucket' ? [{ kind: 'store', name: 'store' } as const] : []),
  ...names('server', values.servers).map(
    (name) => ({ kind: 'server', name, env: { REELGATE_ENCODERS: values.encoders, REELGATE_LIMITS: values.limits } }) as const,
  ),
  { kind: 'proxy', name: 'proxy' },
  ...names('worker', values.workers).map((name) => ({ kind: 'worker', name, isTrusted: values.trusted }) as const),
]

const cluster = await startCluster(parts)
const { owner, dataDir } = cluster.server()
const lines = parts.map(({ name, kind }) => {
  const { addresses, wrapper } = cluster.machine(name)
  const way = kind === 'server' ? cluster.server(name).url : kind === 'proxy' ? cluster.url : ''
  return `${name.padEnd(12)} ${addresses.join(' ').padEnd(24)} ${way.padEnd(24)} ${wrapper.join(' ')}`
})
process.stdout.write(
  `${lines.join('\n')}\n\nThe way in is ${cluster.url}, the API secret ${owner.apiKey}, the data folder ${dataDir}.\nCtrl-C ends and removes all of it.\n`,
)
const stopped = Promise.withResolvers<void>()
// A terminal's Ctrl-C arrives twice: from it, and from the launcher.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stopped.resolve())
await stopped.promise
await cluster.end()
process.exit(0)
