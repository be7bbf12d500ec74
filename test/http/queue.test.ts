import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { untilFinished } from '../data-folder.ts'
import { startReelgate } from '../in-process.ts'
import { makeVideo } from '../videos.ts'

// What the server does with an account's videos, and what it has done with one.

type Queued = {
  video: string
  title: string
  state: string
  part: number | null
  speed: number | null
  receivedBytes: number | null
}
type Event = { at: string; kind: string; actor: { type: string; name: string | null } | null; details: unknown }

test('a video is in the queue from its upload until it is encoded whole, and in no other account’s queue', async () => {
  const reelgate = await startReelgate()
  const { owner } = reelgate
  const other = await reelgate.newOwner('Another')
  const queueOf = async (by = owner) => ((await (await by.call('GET', '/api/queue')).json()) as { rows: Queued[] }).rows
  expect(await queueOf()).toEqual([])
  const seen: Queued[] = []
  const videoId = await owner.upload('Long enough', await makeVideo({ seconds: 8 }))
  while ((await owner.video(videoId)).status !== 'ready') seen.push(...(await queueOf()))
  await untilFinished(reelgate, videoId)
  expect(seen.length).toBeGreaterThan(0)
  for (const row of seen) expect(row).toMatchObject({ video: videoId, title: 'Long enough', receivedBytes: null })
  expect(seen.every(({ state }) => state === 'waiting' || state === 'encoding')).toBe(true)
  const parts = seen.flatMap(({ part }) => (part === null ? [] : [part]))
  expect(parts).toEqual(parts.toSorted((a, b) => a - b))
  expect(await queueOf()).toEqual([])
  expect(await queueOf(other)).toEqual([])
})

test('an import is in the queue while its host has not sent all of it', async () => {
  const silent = createServer().listen(0, '127.0.0.1')
  await once(silent, 'listening')
  onTestFinished(() => {
    silent.closeAllConnections()
    silent.close()
  })
  const host = `127.0.0.1:${(silent.address() as AddressInfo).port}`
  const { owner } = await startReelgate({ env: { REELGATE_OUTBOUND_ALLOW: host } })
  const body = { url: `http://${host}/video.mp4`, title: 'From afar' }
  const { id } = (await (await owner.call('PUT', '/api/videos/importUrl', { body })).json()) as { id: string }
  await once(silent, 'request')
  const { rows } = (await (await owner.call('GET', '/api/queue')).json()) as { rows: Queued[] }
  expect(rows).toMatchObject([{ video: id, state: 'importing', title: 'From afar', receivedBytes: 0, part: null }])
  await owner.delete([id])
})

test('the history of a video says how it came, when it was encoded, and who changed it', async () => {
  const reelgate = await startReelgate({ video: await makeVideo() })
  const { owner, videoId } = reelgate
  await owner.call('POST', `/api/videos/${videoId}`, { body: { title: 'Renamed' } })
  const response = await owner.call('GET', `/api/videos/${videoId}/history`)
  const { status, rows } = (await response.json()) as { status: string; rows: Event[] }
  expect(status).toBe('ready')
  expect(rows.map(({ kind }) => kind).toSorted()).toEqual(
    ['encode:began', 'encode:finished', 'posters:extracted', 'video:created', 'video:edited'].toSorted(),
  )
  expect(rows.map(({ at }) => at)).toEqual(
    rows
      .map(({ at }) => at)
      .toSorted()
      .toReversed(),
  )
  expect(rows.find(({ kind }) => kind === 'video:edited')).toMatchObject({
    actor: { type: 'key', name: 'first key' },
    details: { changed: ['title'] },
  })
  expect(rows.find(({ kind }) => kind === 'encode:finished')).toMatchObject({ actor: null, details: { generation: 1 } })
})
