import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { listSegments } from '../data-folder.ts'
import { startReelgate } from '../in-process.ts'
import { makeVideo } from '../videos.ts'
import { readMediaPlaylist } from '../viewer.ts'

// Segments whose files are not as their rows say.

/** A viewer who plays, and the second segment of the first rendition: its address and its file. */
// Of one colour, so that the encoder never comes near its bitrate's cap: with several threads it keeps that with other bytes each time.
async function startWithSegment() {
  const reelgate = await startReelgate({ video: await makeVideo({ seconds: 9, dark: true }) })
  const viewer = reelgate.newViewer()
  await viewer.redeem(await reelgate.owner.issueOtp(reelgate.videoId))
  const segment = listSegments(reelgate, reelgate.videoId).find(({ number }) => number === 1) ?? expect.fail()
  const { segments } = readMediaPlaylist(await viewer.playlist(String(segment.rendition_id)))
  const address = new URL(segments[1]?.uri ?? '', `${reelgate.url}/play/${viewer.state.session}/playlist/`)
  return { reelgate, segment, path: join(reelgate.dataDir, 'segments', segment.file), ask: () => fetch(address) }
}

const REFUSED = { status: 503, cacheControl: 'no-store', retryAfter: '5', code: 'busy' }

async function refusalOf(response: Response) {
  const { code } = (await response.json()) as { code: string }
  const { headers, status } = response
  return { status, cacheControl: headers.get('cache-control'), retryAfter: headers.get('retry-after'), code }
}

const CASES = [
  {
    what: 'shorter than its row',
    damage: (bytes: Buffer) => bytes.subarray(0, -1),
    problem: (size: number) => `its file has ${size - 1} bytes`,
  },
  { what: 'empty', damage: () => Buffer.alloc(0), problem: () => 'its file has 0 bytes' },
  {
    what: 'longer',
    damage: (bytes: Buffer) => Buffer.concat([bytes, bytes]),
    problem: (size: number) => `its file has ${2 * size} bytes`,
  },
  { what: 'missing', damage: () => undefined, problem: () => 'its file is missing' },
]

test.each(CASES)(
  'F-41, F-42: a segment file that is $what is never sent or cached, the log names it once, and it is encoded again, byte for byte',
  async ({ damage, problem }) => {
    const { reelgate, segment, path, ask } = await startWithSegment()
    const whole = await readFile(path)
    const damaged = damage(whole)
    if (damaged) await writeFile(path, damaged)
    else await rm(path)
    expect(await refusalOf(await ask())).toEqual(REFUSED)
    let answer = await ask()
    while (answer.status !== 200) {
      expect(await refusalOf(answer)).toMatchObject({ status: 503, cacheControl: 'no-store', code: 'busy' })
      answer = await ask()
    }
    for (let i = 0; i < 2; i++) {
      expect(answer.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
      expect(Buffer.from(await answer.arrayBuffer())).toEqual(whole)
      answer = await ask() // the first is sent from the disk, later ones from memory
    }
    expect(await readFile(path)).toEqual(whole)
    const lines = reelgate
      .output()
      .split('\n')
      .filter((line) => line.includes('video: '))
    const segmentNamed = { videoId: reelgate.videoId, generation: 1, renditionId: segment.rendition_id, number: 1 }
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { ...segmentNamed, msg: 'video: damaged', problem: expect.stringContaining(problem(whole.length)) },
      { ...segmentNamed, msg: 'video: repaired' },
    ])
  },
)
