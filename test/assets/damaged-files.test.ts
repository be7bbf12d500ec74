import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Reelgate, startReelgate } from '../in-process.ts'
import { readRows } from '../rows.ts'
import { makeVideo } from '../videos.ts'
import { addFile, SRT } from './sample-files.ts'

type WithVideo = Reelgate & { videoId: string }

/** A video with captions and an MP4. */
async function startWithFiles(): Promise<WithVideo> {
  const reelgate = await startReelgate({ video: await makeVideo() })
  const { owner, videoId } = reelgate
  expect((await addFile(owner, videoId, SRT, 'en')).status).toBe(200)
  await owner.call('POST', `/api/videos/${videoId}/files`, { body: { type: 'mp4' } })
  await expect.poll(() => rowOf(reelgate, 'mp4').blob).toBeTruthy()
  return reelgate
}

function rowOf(reelgate: WithVideo, type: string): { id: number; blob: string | null; token: string | null } {
  const query = 'select id, blob, token from file where video_id = ? and type = ? order by id'
  const [row] = readRows<{ id: number; blob: string | null; token: string | null }>(reelgate, query, reelgate.videoId, type)
  return row ?? expect.fail(`there is no ${type}`)
}

function pathOf(reelgate: WithVideo, type: string): string {
  const query = 'select file from source where video_id = ?'
  if (type === 'original') return join(reelgate.dataDir, 'sources', String(readRows(reelgate, query, reelgate.videoId)[0]?.file))
  return join(reelgate.dataDir, type === 'poster' ? 'posters' : 'files', rowOf(reelgate, type).blob ?? '')
}

async function flipByte(path: string): Promise<void> {
  const bytes = await readFile(path)
  bytes.writeUInt8(bytes.readUInt8(40) ^ 1, 40)
  await writeFile(path, bytes)
}

async function download({ owner, videoId }: WithVideo, fileId: number): Promise<Response> {
  const asked = await owner.call('GET', `/api/videos/${videoId}/files/${fileId}`)
  const { redirect } = (await asked.json()) as { redirect: string }
  return fetch(redirect)
}

const DAMAGE = [
  { how: 'changed', damage: flipByte },
  { how: 'lost', damage: (path: string) => rm(path) },
]

test.each(DAMAGE)(
  'F-56: an original, captions, a poster and an MP4 that the disk has $how answer 503 in words, and the log says it once without a stack',
  async ({ damage }) => {
    const reelgate = await startWithFiles()
    const types = ['original', 'caption', 'mp4', 'poster']
    const ids = new Map(types.map((type) => [type, rowOf(reelgate, type).id]))
    const { token } = rowOf(reelgate, 'poster')
    for (const type of types) await damage(pathOf(reelgate, type))
    const before = rowOf(reelgate, 'mp4').blob
    for (let times = 0; times < 2; times++)
      for (const type of ['original', 'caption', 'poster']) {
        const response = await download(reelgate, ids.get(type) ?? 0)
        expect(response.status).toBe(503)
        expect(await response.text()).toMatch(/missing or damaged on the disk of this server/)
      }
    const poster = await fetch(`${reelgate.url}/poster/${token}.jpg`)
    expect([poster.status, await poster.text()]).toEqual([503, expect.stringMatching(/This poster is missing or damaged/)])
    const mp4 = await download(reelgate, ids.get('mp4') ?? 0)
    expect([mp4.status, await mp4.text()]).toEqual([503, expect.stringMatching(/It is being made again/)])

    const logged = reelgate
      .output()
      .split('\n')
      .filter((line) => line.includes('"file: damaged"'))
    expect(logged.map((line) => JSON.parse(line).kind).sort()).toEqual(['caption', 'mp4', 'original', 'poster'])
    expect(reelgate.output()).not.toMatch(/"stack"|request: failed/)
    await expect.poll(() => rowOf(reelgate, 'mp4').blob).not.toBe(before)
    await expect.poll(() => rowOf(reelgate, 'mp4').blob).toBeTruthy()
    expect((await download(reelgate, ids.get('mp4') ?? 0)).status).toBe(200)
  },
)
