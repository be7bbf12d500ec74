import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { createAccount } from '../../src/accounts/account.ts'
import { createStorageQuota } from '../../src/accounts/storage-quota.ts'
import { ROOT_FOLDER_ID } from '../../src/catalogue/folder.ts'
import { parseMasterKey } from '../../src/crypto/master-key.ts'
import type { Database } from '../../src/db/database.ts'
import { insertParsedImport, parseImport } from '../../src/ingest/import.ts'
import { startImportScheduler } from '../../src/ingest/import-work.ts'
import type { Claims } from '../../src/jobs/claims.ts'
import { createOutboundPolicy, type OutboundPolicy } from '../../src/outbound/policy.ts'
import { createSignals } from '../../src/signals/signals.ts'
import { blobFolder, createFolders } from '../../src/storage/folder.ts'
import { openTestClaims } from '../claims.ts'
import { openDatabaseAt } from '../db/database.ts'
import { connectSecondServer } from '../db/second-server.ts'
import { makeLocation } from '../installation-folder.ts'

// Two servers import for the same owners and share a PostgreSQL. Their hosts accept connections and send nothing.

test.each([
  { limited: 'a host', most: 2, hosts: 1, owners: 6 },
  { limited: 'an account', most: 4, hosts: 6, owners: 1 },
])('F-110: what a server claims between two reads of another counts towards the limit of $limited', async (queue) => {
  const location = await makeLocation({ database: 'postgres' })
  onTestFinished(() => location.remove())
  const first = await openDatabaseAt(location)
  // The second server reads what is running, and then waits before it reads whose imports are due.
  const [hasReadRunning, mayGoOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const second = connectSecondServer(location.databaseUrl ?? '', async (statement) => {
    if (!statement.includes('from "account"')) return
    hasReadRunning.resolve()
    await mayGoOn.promise
  })
  onTestFinished(async () => {
    for (const { close } of [second, first]) await close()
  })
  const outbound = await queueImports(first, queue)
  const [one, other] = [await startServer(first, outbound), await startServer(second, outbound)]
  other.wake()
  await hasReadRunning.promise
  one.wake()
  await one.hasFoundNoMore
  mayGoOn.resolve()
  await other.hasFoundNoMore
  expect(await first.db.selectFrom('claim').select('subject').execute()).toHaveLength(queue.most)
})

// --- tools ---

const NOW_S = 1_800_000_000
const nowS = () => NOW_S
const MASTER_KEY = parseMasterKey(Buffer.alloc(32, 1))
const IMPORTS = 6

/** Queues imports of so many owners from so many hosts. @returns where they may be sent to */
async function queueImports(
  { db, write }: Pick<Database, 'db' | 'write'>,
  { hosts, owners }: { hosts: number; owners: number },
): Promise<OutboundPolicy> {
  const host = createServer().listen(0)
  await once(host, 'listening')
  onTestFinished(() => {
    host.closeAllConnections()
    host.close()
  })
  const { port } = host.address() as AddressInfo
  const numbers = Array.from({ length: IMPORTS }, (_, n) => n)
  const outbound = createOutboundPolicy(numbers.map((n) => `127.0.0.${n + 1}:${port}`))
  const may = { mayUpload: true, mayImport: true }
  const accountIds: string[] = []
  for (let n = 0; n < owners; n++) accountIds.push((await createAccount({ db, write, nowS }, `owner ${n}`, may)).accountId)
  for (const n of numbers) {
    const url = `http://127.0.0.${(n % hosts) + 1}:${port}/${n}.mp4`
    const parsed = parseImport({ outbound, wallNowS: nowS }, { url })
    const accountId = accountIds[n % owners] ?? ''
    const queued = { ...parsed, accountId, folderId: ROOT_FOLDER_ID, addedBy: undefined }
    await write((tx) => insertParsedImport(tx, MASTER_KEY, queued))
  }
  return outbound
}

/** @returns `hasFoundNoMore` resolves when it has claimed all that it finds */
async function startServer({ db, write }: Pick<Database, 'db' | 'write'>, outbound: OutboundPolicy) {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-imports-'))
  const [sources, tmp] = [join(folder, 'sources'), join(folder, 'tmp')]
  await createFolders(sources, tmp)
  const claims = await openTestClaims({ db, write, nowS })
  const noMore = Promise.withResolvers<void>()
  const claimNext: Claims['claimNext'] = async (work) => {
    const job = await claims.claimNext(work)
    if (!job) noMore.resolve()
    return job
  }
  const dispatcher = await startImportScheduler({
    ...{ db, write, nowS, wallNowS: nowS, outbound, masterKey: MASTER_KEY, claims: { claimNext } },
    ...{ importMaxS: 3600, uploadMaxBytes: 1e9, hasRoom: async () => true },
    sources: blobFolder(sources, tmp),
    quota: createStorageQuota({ db, slowQueryDb: db }),
    signals: createSignals(write),
    log: pino({ level: 'silent' }),
  })
  onTestFinished(async () => {
    await dispatcher.stop()
    await rm(folder, { recursive: true })
  })
  return { wake: dispatcher.wake, hasFoundNoMore: noMore.promise }
}
