import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { failAt } from '../crash/strace.ts'
import { getStoredSource, listFiles } from '../data-folder.ts'
import { DATABASE } from '../postgres.ts'
import { type Reelgate, startSharedReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { newChance, rounds } from '../seeded-random.ts'

// System calls that fail where strace says so, once or from then on. What is acknowledged is there; the rest is refused and leaves nothing.

let reelgate: Reelgate & { remove(): Promise<void> }
beforeAll(async () => {
  // One thread for files, so that the n-th call is the same call each time.
  reelgate = await startSharedReelgate({ env: { UV_THREADPOOL_SIZE: '1', REELGATE_LIMITS: 'off' } })
})
afterAll(() => reelgate.remove())

test.each([
  { lost: 'the file', nth: 1 },
  { lost: 'the name in the video’s folder', nth: 2 },
  { lost: 'the name of the video’s folder', nth: 3 },
])(
  'F-14: when the disk loses $lost, the upload is not acknowledged and its file is gone; sent again, it is whole',
  async ({ nth }) => {
    const { owner } = reelgate
    const upload = await owner.credentials(`fsync ${nth} fails`)
    const attached = await failAt(reelgate.pid, { syscall: 'fsync', nth }, 'EIO')
    const answer = await owner.send(upload, new Blob(['a video']))
    await attached.detach()
    expect(answer.status).toBeGreaterThanOrEqual(500)
    expect((await owner.video(upload.videoId)).status).toBe('PRE-Upload')
    expect(await filesOf(upload.videoId)).toEqual([])
    expect((await owner.send(upload, new Blob(['a video']))).status).toBe(201)
    expect(await getStoredSource(reelgate, upload.videoId).clear()).toEqual(Buffer.from('a video'))
  },
)

if (DATABASE === 'sqlite') describe('F-14: the database is on the same disk', losesCommits)

const SAMPLE = rounds(6, 60)

test(`F-15: calls that are interrupted or refused by the system cut nothing short (${SAMPLE} of them)`, async () => {
  const chance = newChance('failing system calls')
  const { owner } = reelgate
  const bytes = 'a video that is longer than one write. '.repeat(20_000)
  const faults = [
    { syscall: 'openat', error: 'EMFILE' },
    { syscall: 'openat', error: 'EINTR' },
    { syscall: 'pwrite64', error: 'EINTR' },
    { syscall: 'pwrite64', error: 'EAGAIN' },
    { syscall: 'pwrite64', error: 'ENOSPC' },
    { syscall: 'write', error: 'EINTR' },
    { syscall: 'rename', error: 'EIO' },
    { syscall: 'mkdir', error: 'ENOSPC' },
  ] as const
  for (let i = 0; i < SAMPLE; i++) {
    const { syscall, error } = faults[Math.floor(chance.between(0, faults.length))] ?? faults[0]
    const nth = Math.floor(chance.between(1, syscall === 'write' || syscall === 'pwrite64' ? 12 : 3))
    const where = `${error} at ${syscall} ${nth}`
    const upload = await owner.credentials(where)
    const attached = await failAt(reelgate.pid, { syscall, nth }, error)
    const answer = await owner.send(upload, new Blob([bytes]))
    const listed = await owner.call('GET', '/api/videos')
    await attached.detach()
    expect([200, 500, 503], where).toContain(listed.status)
    if (answer.status === 201) {
      expect(
        createHash('sha256')
          .update(await getStoredSource(reelgate, upload.videoId).clear())
          .digest(),
        where,
      ).toEqual(createHash('sha256').update(bytes).digest())
    } else {
      expect(answer.status, where).toBeGreaterThanOrEqual(500)
      expect(readRows(reelgate, 'select 1 from source where video_id = ?', upload.videoId), where).toEqual([])
      // A file whose row may come back stays for the sweep.
      if (!/may or may not have been saved/.test(await answer.text())) expect(await filesOf(upload.videoId), where).toEqual([])
      expect((await owner.send(upload, new Blob([bytes]))).status, where).toBe(201)
    }
  }
  expect(await listFiles(reelgate, 'tmp')).toEqual([])
}, 600_000)

function losesCommits() {
  test('while the disk keeps nothing, nothing is acknowledged; the next start finds all that was, and of the rest nothing half', async () => {
    const { owner } = reelgate
    const upload = await owner.credentials('before')
    const before = await titles()
    const attached = await failAt(reelgate.pid, { syscall: 'fsync', nth: 1 }, 'EIO', { andAllAfter: true })
    expect((await owner.send(upload, new Blob(['a video']))).status).toBeGreaterThanOrEqual(500)
    const refused = await owner.call('PUT', '/api/videos?title=never')
    expect(refused.status).toBe(503)
    expect(await refused.json()).toMatchObject({ message: expect.stringContaining('The disk reported an error') })
    expect(await titles()).toEqual(before)
    await attached.detach()
    await reelgate.kill()
    await reelgate.restart()
    // The outcome of a commit whose fsync failed is unknown, as the answer said: it is there whole, or not at all.
    const after = await titles()
    expect(after.filter((title) => title !== 'never')).toEqual(before)
    const policies = "select 1 from upload_policy join video on id = video_id where title = 'never'"
    expect(readRows(reelgate, policies)).toHaveLength(after.length - before.length)
    expect(await filesOf(upload.videoId)).toEqual([])
    expect((await owner.send(upload, new Blob(['a video']))).status).toBe(201)
  })

  test('F-31: an upload whose commit the disk did not keep is there after a crash with its file, or not at all', async () => {
    const { owner } = reelgate
    const upload = await owner.credentials('commit fails')
    const attached = await failAt(reelgate.pid, { syscall: 'fsync', nth: 1 }, 'EIO', { andAllAfter: true, mainThreadOnly: true })
    expect((await owner.send(upload, new Blob(['a video']))).status).toBe(503)
    await attached.detach()
    await reelgate.kill()
    await reelgate.restart()
    if ((await owner.video(upload.videoId)).status === 'PRE-Upload') {
      expect((await owner.send(upload, new Blob(['a video']))).status).toBe(201)
    }
    expect(await getStoredSource(reelgate, upload.videoId).clear()).toEqual(Buffer.from('a video'))
    await owner.until(upload.videoId, 'Not a media file') // what it is, and not that it is gone
  })
}

async function titles(): Promise<string[]> {
  const { count, rows } = await reelgate.owner.list()
  expect(rows).toHaveLength(count)
  return rows.map(({ title }) => title)
}

async function filesOf(videoId: string): Promise<string[]> {
  const files = await listFiles(reelgate)
  return files.filter((name) => !name.endsWith('/') && (name.startsWith('tmp/') || name.includes(videoId)))
}
