import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { readConfig } from '../src/config/config.ts'
import { sendCommand } from '../src/control/socket.ts'
import { wrapContentKey } from '../src/crypto/content-key.ts'
import { wrap } from '../src/crypto/master-key.ts'
import { sourceKeyPurpose } from '../src/ingest/source.ts'
import { openInstallation } from '../src/installation/open.ts'
import { copyFilledFolder } from './fill.ts'
import { timeMs } from './interleaved.ts'
import type { Row, Scope } from './row.ts'
import { startService } from './service.ts'

const VIDEOS = 100_000
const BATCH_ROWS = 1_000

export const ROTATE_ROWS: readonly Row[] = [
  {
    name: 'rotate-100000',
    what: 'a new master key for 100 000 videos and their sources, with a running server',
    unit: 's',
    aim: { oursAtMost: 10 },
    measure: async (scope) => ({ ours: await measureRotationS(scope) }),
  },
]

async function measureRotationS(scope: Scope): Promise<number> {
  const { dataDir } = await copyFilledFolder(scope, VIDEOS)
  await addKeys(dataDir)
  await startService(scope, dataDir)
  return (await timeMs(() => sendCommand(join(dataDir, 'control.sock'), 'key rotate-master', {}))) / 1000
}

/** A content key and the key of a source for each video. */
async function addKeys(dataDir: string): Promise<void> {
  const { db, write, masterKey, close } = await openInstallation(readConfig({ REELGATE_DATA: dataDir }))
  const videos = await db.selectFrom('video').select('id').execute()
  const source = { sizeBytes: 1, sha256: Buffer.alloc(32), iv: Buffer.alloc(16), macs: Buffer.alloc(32) }
  for (let first = 0; first < videos.length; first += BATCH_ROWS) {
    const ids = videos.slice(first, first + BATCH_ROWS).map(({ id }) => id)
    await write(async (tx) => {
      const generations = ids.map((videoId) => ({
        ...{ videoId, number: 1, plan: '{}', encoder: '', createdAtS: 1 },
        wrappedContentKey: wrapContentKey(masterKey, videoId, 1, randomBytes(32)),
      }))
      await tx.insertInto('generation').values(generations).execute()
      const sources = ids.map((videoId) => ({
        ...{ ...source, videoId, file: `${videoId}/x` },
        wrappedKey: wrap(masterKey, sourceKeyPurpose(videoId), randomBytes(16)),
      }))
      await tx.insertInto('source').values(sources).execute()
    })
  }
  await close()
}
