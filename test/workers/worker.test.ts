import { existsSync } from 'node:fs'
import { open, readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { getContentKey, untilFinished } from '../data-folder.ts'
import { startReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { STORAGE } from '../s3.ts'
import { makeVideo } from '../videos.ts'
import { addWorker, startWorker } from './worker-process.ts'

// A server without encoders of its own, and a worker in a process of its own that reaches it over HTTP on this machine.

const WITHOUT_ENCODERS = { REELGATE_ENCODERS: '0' }

test('J01, J12, J13: a worker encodes a video to the end, and it plays; it holds nothing of the installation, and leaves nothing', async () => {
  const reelgate = await startReelgate({ env: WITHOUT_ENCODERS })
  const token = await addWorker(reelgate, 'office')
  const worker = startWorker(reelgate.url, token)
  const videoId = await reelgate.owner.upload('Whales of the North Sea', await makeVideo({ seconds: 14 }))
  await untilFinished(reelgate, videoId)
  expect(await reelgate.owner.video(videoId)).toMatchObject({ status: 'ready' })
  const viewer = reelgate.newViewer()
  expect(await viewer.redeem(await reelgate.owner.issueOtp(videoId))).toMatchObject({ playing: true })
  expect((await viewer.key(0)).status).toBe(200)
  const masterKey = (await readFile(reelgate.masterKeyFile, 'utf8')).trim()
  const contentKey = getContentKey(reelgate, videoId)
  const secrets = {
    masterKey,
    masterKeyBytes: Buffer.from(masterKey, 'hex'),
    contentKey,
    title: 'Whales of the North Sea',
    videoId,
  }
  const found = await findInMemory(worker.pid, { token, ...secrets })
  // The token is there, so that the search is one. The address of a segment in a bucket has the video's id.
  expect(found).toEqual(STORAGE === 'bucket' ? ['token', 'videoId'] : ['token'])
  const environment = await readFile(`/proc/${worker.pid}/environ`, 'utf8')
  expect(environment.split('\0').flatMap((entry) => /^REELGATE_[^=]*/.exec(entry)?.[0] ?? [])).toEqual([
    'REELGATE_WORKER_TOKEN',
    'REELGATE_SANDBOX',
  ])
  const chunks = readRows(reelgate, 'select state, worker_id is not null as by_worker from chunk where video_id = ?', videoId)
  expect(chunks.length).toBeGreaterThan(2)
  expect(new Set(chunks.map(({ state, by_worker }) => `${state} ${by_worker}`))).toEqual(new Set(['done 1']))

  worker.kill('SIGTERM')
  expect(await worker.ended).toBe(0)
  expect(existsSync(worker.cacheFolder)).toBe(false)
  await reelgate.cli('worker', 'remove', 'office')
  const [removed, unprotected] = [startWorker(reelgate.url, token), startWorker('http://192.0.2.1', token)]
  expect([await removed.ended, await unprotected.ended]).toEqual([1, 1])
  await expect.poll(removed.output).toContain('it was removed')
  await expect.poll(unprotected.output).toContain('--server expects')
})

/** Which of these a process has in its memory. */
async function findInMemory(pid: number, needles: Record<string, string | Buffer>): Promise<string[]> {
  const maps = await readFile(`/proc/${pid}/maps`, 'utf8')
  await using memory = await open(`/proc/${pid}/mem`)
  const found = new Set<string>()
  for (const [, from = '', to = ''] of maps.matchAll(/^([0-9a-f]+)-([0-9a-f]+) rw/gm)) {
    const [start, end] = [Number.parseInt(from, 16), Number.parseInt(to, 16)]
    const bytes = Buffer.alloc(Math.min(end - start, 2 ** 28))
    const { bytesRead } = await memory.read(bytes, 0, bytes.length, start).catch(() => ({ bytesRead: 0 }))
    for (const [name, needle] of Object.entries(needles)) if (bytes.subarray(0, bytesRead).includes(needle)) found.add(name)
  }
  return [...found]
}
