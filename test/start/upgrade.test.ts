import { expect, test } from 'vitest'
import { startReelgate } from '../in-process.ts'
import { startReelgate as startProcess } from '../reelgate.ts'
import { listTablesWithoutClock, readRows, type Stored } from '../rows.ts'
import { makeInstallation020, OTP_OF_ANN } from './installation-0.2.0.ts'

test('F-37: an installation of 0.2.0 is upgraded by a start: its videos play, an OTP that it issued opens one, and its viewers resume', async () => {
  const reelgate = await startReelgate({ copyOf: await makeInstallation020() })
  const viewer = reelgate.newViewer()
  expect(await viewer.redeem(OTP_OF_ANN)).toMatchObject({ playing: true, body: { resumeAtS: 25 } })
  expect((await viewer.key(0)).status).toBe(200)
})

test.each(['sqlite', 'postgres'] as const)(
  'F-37: an upgrade of 0.2.0 on %s keeps every row, and the server continues with them',
  async (database) => {
    const before = await makeInstallation020(database)
    const counts = countRows(before, listTablesWithoutClock(before))
    const reelgate = await startReelgate({ database, copyOf: before })
    const { watch_position, kysely_migration, ...others } = counts
    expect(countRows(reelgate, Object.keys(others))).toEqual(others)
    expect(countRows(reelgate, ['viewing'])).toEqual({ viewing: watch_position })

    const { owner, videoId } = reelgate
    expect((await owner.list()).rows).toMatchObject([
      { id: videoId, title: 'Lesson 1: Größe', status: 'ready', tags: ['physics', 'year 7'] },
    ])
    expect((await owner.list('?q=gr%C3%B6%C3%9Fe')).rows).toHaveLength(1)
    expect((await owner.call('GET', '/api/hooks')).status).toBe(200)
    // Loudness is not changed for an account that has videos already.
    expect(await (await owner.call('GET', '/api/account')).json()).toMatchObject({ normalizesLoudness: false })
    expect((await owner.call('DELETE', `/api/videos?videos=${videoId}`)).status).toBe(200)
  },
)

function countRows(stored: Stored, tables: readonly string[]): Record<string, number> {
  const count = (table: string) => readRows<{ n: number }>(stored, `select count(*) as n from ${table}`)[0]?.n ?? 0
  return Object.fromEntries(tables.map((table) => [table, count(table)]))
}

test('F-37: an upgrade backs up the rows first, and says how to go back: by that command the installation is as it was before', async () => {
  const reelgate = await startProcess({ database: 'sqlite', copyOf: await makeInstallation020('sqlite') })
  const { videoId } = reelgate
  const [, ...command] = /npx reelgate (restore \S+before-upgrade --rows --at [\w.-]+)"/.exec(reelgate.output()) ?? []
  const args = command.join(' ').split(' ')
  expect(args).toHaveLength(5)
  await reelgate.owner.call('POST', '/api/videos/tags', { body: { videos: [videoId], tags: ['after'] } })
  expect((await reelgate.cli(...args)).stderr).toMatch(/A server runs on/)
  await reelgate.stop()

  expect(await reelgate.cli(...args)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^Restored the rows of .*: 1 videos/),
  })
  // The tables are those of the version before, for that version to be installed.
  expect(readRows(reelgate, 'select name from kysely_migration')).toEqual([{ name: '0001-tables' }])
  await reelgate.restart()
  expect((await reelgate.owner.list()).rows).toMatchObject([{ id: videoId, tags: ['physics', 'year 7'] }])
  expect(reelgate.output()).not.toMatch(/webhook: held/)
  const viewer = reelgate.newViewer()
  await viewer.redeem(await reelgate.owner.issueOtp(videoId))
  expect((await viewer.key(0)).status).toBe(200)
})
