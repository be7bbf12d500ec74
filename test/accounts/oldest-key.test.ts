import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import { dataPaths } from '../../src/config/data-paths.ts'
import { sendCommand } from '../../src/control/socket.ts'
import { startServer } from '../../src/server.ts'
import { makeLocation } from '../installation-folder.ts'

test('the account of the first start is the oldest, though the wall clock has gone on since the playback clock was set by it', async () => {
  const location = await makeLocation()
  onTestFinished(() => location.remove())
  const env = { ...location.env, PORT: '0', REELGATE_DEMO: 'off' }
  const startedS = 1_900_000_000
  let asked = 0
  const wallNowS = () => startedS + Number(asked++ > 0)
  const server = await startServer(readConfig(env), pino({ level: 'silent' }), { wallNowS })
  onTestFinished(() => server.stop())
  const { controlSocket } = dataPaths(location.dataDir)
  await sendCommand(controlSocket, 'account create', { name: 'second', mayUpload: true, mayImport: true })
  const accounts = (await sendCommand(controlSocket, 'account list', {})) as { name: string; createdAtS: number }[]
  const madeAtS = (name: string) => accounts.find((account) => account.name === name)?.createdAtS
  expect(madeAtS('owner')).toBeLessThanOrEqual(madeAtS('second') ?? 0)
})
