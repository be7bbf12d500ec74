import { type Actor, recordAuditEvent } from '../audit/audit-log.ts'
import type { Db } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import { Failure } from '../errors.ts'
import { listServers, saveDrained } from './server-store.ts'

/** A server as it is shown to administrators. */
type ListedServer = {
  id: string
  name: string
  version: string
  state: 'serves' | 'starts' | 'stops' | 'drained' | 'silent'
  startedAtS: number
  /** Viewers that watch there now. */
  sessions: number
  load: number
}

/** Signs of life come once a second. */
const SILENT_S = 5

/** The servers of this database, by name; none where it can have only one. @param nowS the database's clock */
export async function findServers(db: Db, nowS: number): Promise<ListedServer[]> {
  return (await listServers(db)).map(({ id, name, version, startedAtS, sessions, load, ...row }) => ({
    ...{ id, name, version, startedAtS, sessions, load },
    state: stateOf(row, nowS),
  }))
}

/** What a row says of whether its server serves. */
export type ServerSigns = Pick<Awaited<ReturnType<typeof listServers>>[number], 'state' | 'drained' | 'beatAtS'>

export function stateOf({ state, drained, beatAtS }: ServerSigns, nowS: number): ListedServer['state'] {
  if (nowS - beatAtS > SILENT_S) return 'silent'
  if (drained === 1) return 'drained'
  return ({ joining: 'starts', serving: 'serves', stopping: 'stops' } as const)[state]
}

/**
 * Has a server report within a second that it is not ready, so that balancers send it nothing more; it still answers. Or takes that back.
 * @throws Failure `not-found`
 */
export async function setServerDrained(
  { write, nowS }: { write: Write; nowS: () => number },
  id: string,
  drained: boolean,
  by: Actor,
): Promise<void> {
  await write(async (tx) => {
    const name = await saveDrained(tx, id, drained)
    if (name === undefined)
      throw new Failure('not-found', `There is no server ${id}. The System page lists those that there are.`)
    const details = { name, drained }
    await recordAuditEvent(tx, { atS: nowS(), accountId: undefined, by, kind: 'server:changed', subjects: [id], details })
  })
}
