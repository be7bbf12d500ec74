import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import type { Plan } from '../../src/encode/plan.ts'
import { segmentCipher, segmentDecipher } from '../../src/encode/publication.ts'
import { blobOf, getContentKey, listSegments, untilFinished } from '../data-folder.ts'
import { type Reelgate, startReelgate } from '../in-process.ts'
import { changeRows, readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'

// What a trusted worker had published is compared once it is suspended, and a video with a wrong segment is encoded again.

const WORKER = 'a'.repeat(32)

/** As if a worker had encoded all of the video, that was suspended afterwards. */
function suspend(reelgate: Reelgate): void {
  changeRows(reelgate, 'update chunk set worker_id = ?', WORKER)
  changeRows(
    reelgate,
    `insert into worker (id, name, hash, trusted, drained, created_at_s, suspended_reason) values (?, 'office', ?, 1, 0, 1, 'other frames')`,
    WORKER,
    Buffer.alloc(32, 1),
  )
}

const chunksOfWorker = (reelgate: Reelgate) => readRows(reelgate, 'select 1 from chunk where worker_id = ?', WORKER).length
const generations = (reelgate: Reelgate) => readRows(reelgate, 'select number from generation').map(({ number }) => number)

function planOf(reelgate: Reelgate): Plan {
  const [row] = readRows<{ plan: string }>(reelgate, 'select plan from generation')
  return JSON.parse(row?.plan ?? '')
}

test('J24: what a suspended worker had published rightly stays, and a video with a wrong segment is encoded again', async () => {
  const reelgate = await startReelgate({ video: await makeVideo({ seconds: 12, size: '96x64' }) })
  const { videoId } = reelgate
  await reelgate.stop()
  suspend(reelgate)
  await reelgate.restart()
  await expect.poll(() => chunksOfWorker(reelgate)).toBe(0)
  expect(generations(reelgate)).toEqual([1])

  await reelgate.stop()
  changeRows(reelgate, 'update chunk set worker_id = ?', WORKER)
  const keyed = {
    videoId,
    generation: 1,
    sourceNumber: 1,
    encoder: '',
    plan: planOf(reelgate),
    contentKey: getContentKey(reelgate, videoId),
  }
  const [first, second] = listSegments(reelgate, videoId)
  if (!first || !second) throw new Error('the video has too few segments')
  // The pictures of its first segment in place of its second, encrypted and named as they would be.
  const clear = segmentDecipher(keyed, 'video')(
    first.rendition_id,
    first.number,
    await blobOf(reelgate, 'segments', first.file).read(),
  )
  const wrong = segmentCipher(keyed, 'video')(second.rendition_id, second.number, clear)
  await blobOf(reelgate, 'segments', second.file).write(wrong)
  changeRows(
    reelgate,
    'update segment set size_bytes = ?, sha256 = ? where rendition_id = ? and number = ?',
    wrong.length,
    createHash('sha256').update(wrong).digest(),
    second.rendition_id,
    second.number,
  )
  await reelgate.restart()
  await expect.poll(() => generations(reelgate)).toEqual([2])
  await untilFinished(reelgate, videoId)
  expect(readRows(reelgate, `select actor from audit_event where kind = 'video:reencrypted'`)).toHaveLength(1)
})

test('J24: a video that cannot be compared now does not keep the others from it', async () => {
  const reelgate = await startReelgate({ video: await makeVideo({ seconds: 12, size: '96x64' }) })
  const otherId = await reelgate.owner.upload('Another', await makeVideo({ seconds: 4, size: '96x64' }))
  await untilFinished(reelgate, otherId)
  await reelgate.stop()
  suspend(reelgate)
  const waiting = () => [
    ...new Set(readRows(reelgate, 'select video_id from chunk where worker_id = ?', WORKER).map(({ video_id }) => video_id)),
  ]
  const [first] = waiting() // the server finds it first, too
  expect(waiting()).toHaveLength(2)
  const [source] = readRows<{ file: string }>(reelgate, 'select file from source where video_id = ?', String(first))
  const blob = blobOf(reelgate, 'sources', source?.file ?? '')
  await blob.remove()
  await reelgate.restart()
  await expect.poll(waiting).toEqual([first])
})
