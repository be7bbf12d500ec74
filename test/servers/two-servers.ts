import { type Cluster, startCluster } from '../cluster/cluster.ts'
import type { Reached } from '../postgres/cluster.ts'
import { askForShared } from '../postgres.ts'
import type { ReachedStore } from '../s3/radosgw.ts'

/** Viewers are outside, where the bucket is not. */
const VIA_SERVERS = { REELGATE_MEDIA_DELIVERY: 'server' }

/** Two servers, `left` and `right`, on machines of their own behind nginx (`proxy`), with the run's PostgreSQL and bucket. */
export async function startTwoServers(): Promise<Cluster> {
  return startCluster([
    { kind: 'database', name: 'database', of: await askForShared<Reached>('postgresSocket') },
    { kind: 'store', name: 'store', of: await askForShared<ReachedStore>('objectStoreSocket') },
    { kind: 'server', name: 'left', env: { REELGATE_SERVER_NAME: 'left', ...VIA_SERVERS } },
    { kind: 'server', name: 'right', env: { REELGATE_SERVER_NAME: 'right', ...VIA_SERVERS } },
    { kind: 'proxy', name: 'proxy' },
  ])
}
