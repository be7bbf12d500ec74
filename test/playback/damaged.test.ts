import { mkdir, readFile, rename, rm, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { listSegments } from '../data-folder.ts'
import { startReelgate } from '../in-process.ts'
import { readRows } from '../rows.ts'
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
  const readSegment = async () => {
    const { segments } = readMediaPlaylist(await viewer.playlist(String(segment.rendition_id)))
    return segments[1] ?? expect.fail()
  }
  const addressOf = (uri: string) => new URL(uri, `${reelgate.url}/play/${viewer.state.session}/playlist/`)
  const { uri, iv } = await readSegment()
  return {
    ...{ reelgate, segment, path: join(reelgate.dataDir, 'segments', segment.file) },
    ...{ readSegment, uri, iv, askFor: (uri: string) => fetch(addressOf(uri)), ask: () => fetch(addressOf(uri)) },
  }
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

test('F-70: while the disk of segments is not mounted nothing is marked as damaged, and afterwards the video plays on', async () => {
  const { reelgate, path, ask } = await startWithSegment()
  const whole = await readFile(path)
  const folder = join(reelgate.dataDir, 'segments')
  await rename(folder, `${folder}.away`)
  await mkdir(folder) // where its disk is mounted
  expect((await ask()).status).toBe(503)
  await rmdir(folder)
  await rename(`${folder}.away`, folder)
  expect(Buffer.from(await (await ask()).arrayBuffer())).toEqual(whole)
  expect(readRows(reelgate, 'select number from segment where damaged = 1')).toEqual([])
  expect(reelgate.output()).toContain('Mount its disk')
})

/** Changes a byte in the middle; the length remains. */
async function flipByte(path: string): Promise<void> {
  const bytes = await readFile(path)
  const middle = Math.floor(bytes.length / 2)
  bytes.writeUInt8(bytes.readUInt8(middle) ^ 1, middle)
  await writeFile(path, bytes)
}

async function untilSent(ask: () => Promise<Response>): Promise<Response> {
  let answer = await ask()
  while (answer.status !== 200) {
    expect(await refusalOf(answer)).toMatchObject({ status: 503, cacheControl: 'no-store', code: 'busy' })
    answer = await ask()
  }
  return answer
}

const READS = [
  { when: 'before it is read for the first time', readsBefore: 0 },
  { when: 'after it was sent once, from the disk', readsBefore: 1 },
]

test.each(READS)(
  'F-65: a segment whose bytes change $when is not sent, whole or in part: it is repaired under a new address with the same IV, and the old one is gone',
  async ({ readsBefore }) => {
    const { reelgate, path, ask, askFor, readSegment, uri, iv } = await startWithSegment()
    const whole = await readFile(path)
    for (let n = 0; n < readsBefore; n++) expect(Buffer.from(await (await ask()).arrayBuffer())).toEqual(whole)
    await flipByte(path)
    expect(await refusalOf(await ask())).toEqual(REFUSED)

    await expect.poll(async () => (await readSegment()).uri).toBe(uri.replace('/1.m4s', '/1.1.m4s'))
    const repaired = await readSegment()
    expect(repaired.iv).toEqual(iv)
    const answer = await untilSent(() => askFor(repaired.uri))
    expect(answer.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
    expect(Buffer.from(await answer.arrayBuffer())).toEqual(whole)
    expect(await readFile(path)).toEqual(whole)
    for (const gone of [uri, uri.replace('/1.m4s', '/1.2.m4s')]) {
      const { status, cacheControl, code } = await refusalOf(await askFor(gone))
      expect({ status, cacheControl, code }).toEqual({ status: 404, cacheControl: 'no-store', code: 'segment-replaced' })
    }
    expect((await askFor(uri.replace('/1.m4s', '/1.0.m4s'))).status).toBe(400)

    // What is in memory is whole; another process reads the file.
    await reelgate.stop()
    await flipByte(path)
    await reelgate.restart()
    expect(await refusalOf(await askFor(repaired.uri))).toEqual(REFUSED)
    await expect.poll(async () => (await readSegment()).uri).toBe(uri.replace('/1.m4s', '/1.2.m4s'))
    await untilSent(() => askFor(uri.replace('/1.m4s', '/1.2.m4s')))
  },
)

test('F-65: the first part of a segment is not sent either when a byte of another part has changed', async () => {
  const { path, uri, reelgate } = await startWithSegment()
  await flipByte(path)
  const address = new URL(uri, `${reelgate.url}/play/x/playlist/`)
  expect((await fetch(address, { headers: { Range: 'bytes=0-99' } })).status).toBe(503)
})
