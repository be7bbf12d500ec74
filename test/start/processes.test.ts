import { mkdir } from 'node:fs/promises'
import { expect, onTestFinished, test } from 'vitest'
import { addAccount } from '../../src/accounts/account.ts'
import { createApiKey } from '../../src/accounts/api-key.ts'
import { PERMISSIONS } from '../../src/accounts/permission.ts'
import { deleteVideos } from '../../src/catalogue/deletion.ts'
import { openLog } from '../../src/cli/log.ts'
import { readConfig } from '../../src/config/config.ts'
import { Failure } from '../../src/errors.ts'
import { type Foundation, openFoundation } from '../../src/installation/open-foundation.ts'
import { startEncoder } from '../../src/processes/encoder.ts'
import { startMaintenance } from '../../src/processes/maintenance.ts'
import { startWeb } from '../../src/processes/web.ts'
import { createOwner } from '../client.ts'
import { makeLocation } from '../installation-folder.ts'
import { makeVideo } from '../videos.ts'

test('F-142: each process opens by itself: one takes an upload, one encodes it, one removes it', async () => {
  const location = await makeLocation({})
  onTestFinished(() => location.remove())
  await mkdir(location.dataDir, { recursive: true })
  const statuses = (db: Foundation['db']) => db.selectFrom('video').select(['id', 'status']).execute()

  const uploaded = await withProcess(location.env, async (foundation) => {
    const { url } = await startWeb(foundation)
    const account = { name: 'Ann', mayUpload: true, mayImport: true, createdAtS: 1, by: 'command-line' } as const
    const { accountId } = await foundation.write((tx) => addAccount(tx, account))
    const key = { name: 'all', permissions: [...PERMISSIONS] }
    const { apiKey } = await createApiKey(foundation, 'Ann', key)
    const videoId = await createOwner(url, apiKey).upload('A video', await makeVideo())
    expect(await statuses(foundation.db)).toEqual([{ id: videoId, status: 'Queued' }])
    return { accountId, videoId }
  })

  await withProcess(location.env, async (foundation) => {
    await startEncoder(foundation)
    void foundation.signals.send('work-queued', 'encode')
    await expect.poll(() => statuses(foundation.db)).toEqual([{ id: uploaded.videoId, status: 'ready' }])
  })

  await withProcess(location.env, async (foundation) => {
    await startMaintenance(foundation)
    const { accountId, videoId } = uploaded
    await deleteVideos(foundation.deletion, { accountId, by: 'server', videoIds: [videoId] })
    await expect.poll(() => statuses(foundation.db)).toEqual([])
  })
})

/** Opens the foundation for one process, and closes what was opened on it. */
async function withProcess<T>(env: NodeJS.ProcessEnv, work: (foundation: Foundation) => Promise<T>): Promise<T> {
  const stopping = new AbortController()
  const opened = new AsyncDisposableStack()
  const config = readConfig({ ...env, PORT: '0' })
  try {
    return await work(await openFoundation({ config, log: openLog('silent'), opened, signal: stopping.signal }, {}))
  } finally {
    stopping.abort(new Failure('unavailable', 'the test has ended'))
    await opened.disposeAsync()
  }
}
