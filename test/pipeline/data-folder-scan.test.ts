import { readFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { deriveWindowKey } from '../../src/crypto/content-key.ts'
import { readAtRest } from '../at-rest.ts'
import { getContentKey, getMasterKey, getStoredSource, untilFinished } from '../data-folder.ts'
import { footage } from '../footage.ts'
import { type Reelgate, startReelgate } from '../reelgate.ts'
import { newChance } from '../seeded-random.ts'
import { cutVideo } from '../videos.ts'

test('P05: at no moment does the data folder hold clear media or a key in clear', async () => {
  const reelgate = await startReelgate()
  const video = await cutVideo(footage.movieHello, 4)
  const videoId = await reelgate.owner.upload('A video', video)
  const windows = await sampleWindows(video)
  const finished = untilFinished(reelgate, videoId).then(() => true)
  let scans = 0
  for (let isDone = false; !isDone; scans++) {
    isDone = await Promise.race([finished, pause(200).then(() => false)])
    const files = await readAtRest(reelgate)
    expect(clearMediaIn(files, windows)).toEqual([])
    expect(keysIn(files, await keysOf(reelgate, videoId))).toEqual([])
  }
  expect(scans).toBeGreaterThan(1)
  // L01: nor does it say them, but for the API secret of the first start.
  const said = new Map([['what the server said', Buffer.from(reelgate.output().replace(reelgate.owner.apiKey, ''))]])
  expect(keysIn(said, await keysOf(reelgate, videoId))).toEqual([])
  const files = await readAtRest(reelgate)
  expect([...files.keys()].filter((name) => /^(sources|segments|posters)\//.test(name)).length).toBeGreaterThan(5)
})

test('the scan would find clear media and keys, were there any', async () => {
  const clear = await readFile(footage.movieHello)
  const windows = await sampleWindows(footage.movieHello)
  expect(clearMediaIn(new Map([['segments/x', clear]]), windows)).toHaveLength(201)
  const at = clear.indexOf(windows[0] ?? '')
  const hidden = Buffer.concat([Buffer.alloc(5000, 0xa5), clear.subarray(at - 1000, at + 1000)])
  expect(clearMediaIn(new Map([['reelgate.db-wal', hidden]]), windows)).not.toEqual([])
  const jpeg = Buffer.concat([Buffer.alloc(10), Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 16]), Buffer.from('JFIF\0')])
  expect(clearMediaIn(new Map([['posters/x', jpeg]]), [])).toHaveLength(1)
  const adts = Buffer.concat(
    Array.from({ length: 4 }, () => Buffer.from([0xff, 0xf1, 0x4c, 0x80, 0x02, 0x1f, 0xfc, ...new Array(9).fill(7)])),
  )
  expect(clearMediaIn(new Map([['segments/x', adts]]), [])).toHaveLength(1)
  const key = Buffer.from('00112233445566778899aabbccddeeff', 'hex')
  for (const text of [
    key.toString('hex'),
    key.toString('hex').toUpperCase(),
    key.toString('base64'),
    key.toString('base64url'),
    key,
  ]) {
    expect(
      keysIn(new Map([['x', Buffer.concat([Buffer.from('..'), Buffer.from(text), Buffer.from('..')])]]), { key }),
    ).toHaveLength(1)
  }
})

/** What of the folder can be taken for media: `file: what`. */
function clearMediaIn(files: ReadonlyMap<string, Buffer>, windows: readonly Buffer[]): string[] {
  const found: string[] = []
  for (const [name, bytes] of files) {
    const text = bytes.toString('latin1')
    // Init segments lie in the database: they name a codec and show nothing.
    const boxes = name.startsWith('reelgate.db') ? /\0[\s\S]{3}(moof|mdat)/ : /\0[\s\S]{3}(ftyp|styp|moov|moof|mdat)/
    const isMedia = boxes.test(text) || /\xff\xd8\xff[\s\S]{3}(JFIF|Exif)\0/.test(text) || hasAdts(bytes)
    if (isMedia) found.push(`${name}: a file of media`)
    found.push(...windows.filter((window) => bytes.includes(window)).map((window) => `${name}: ${window.toString('hex')}`))
  }
  return found
}

/** Three frames of ADTS in a row: each says where the next begins. */
function hasAdts(bytes: Buffer): boolean {
  const frameBytes = (at: number) =>
    at + 6 < bytes.length && bytes[at] === 0xff && ((bytes[at + 1] ?? 0) & 0xf6) === 0xf0
      ? (bytes.readUInt32BE(at + 2) >> 5) & 0x1fff
      : 0
  for (let at = bytes.indexOf(0xff); at >= 0; at = bytes.indexOf(0xff, at + 1)) {
    const [first] = [frameBytes(at)]
    if (first < 8) continue
    const second = frameBytes(at + first)
    if (second >= 8 && frameBytes(at + first + second) >= 8) return true
  }
  return false
}

/** Two hundred places of a video's picture and sound, 16 bytes each, that are not just padding. */
async function sampleWindows(path: string): Promise<Buffer[]> {
  const chance = newChance('places of the source')
  const media = mediaOf(await readFile(path))
  const windows: Buffer[] = []
  while (windows.length < 200) {
    const at = Math.floor(chance.between(0, media.length - 16))
    const window = media.subarray(at, at + 16)
    if (new Set(window).size > 8) windows.push(window)
  }
  return windows
}

/** What an MP4 holds in its mdat box: its other boxes say in part the same bytes in every MP4, init segments included. */
function mediaOf(mp4: Buffer): Buffer {
  for (let at = 0; at < mp4.length; ) {
    const sizeBytes = mp4.readUInt32BE(at)
    if (mp4.toString('latin1', at + 4, at + 8) === 'mdat') return mp4.subarray(at + 8, at + sizeBytes)
    at += sizeBytes
  }
  throw new Error('the video has no mdat box')
}

async function keysOf(reelgate: Reelgate, videoId: string): Promise<Record<string, Buffer>> {
  const content = await Promise.resolve()
    .then(() => getContentKey(reelgate, videoId))
    .catch(() => undefined) // not made yet
  return {
    'the master key': getMasterKey(reelgate).bytes,
    'the source’s key': getStoredSource(reelgate, videoId).seal.key,
    'the API secret': Buffer.from(reelgate.owner.apiKey),
    ...(content && { 'the content key': content, 'the first window’s key': deriveWindowKey(content, 0) }),
  }
}

function keysIn(files: ReadonlyMap<string, Buffer>, keys: Record<string, Buffer>): string[] {
  return [...files].flatMap(([name, bytes]) =>
    Object.entries(keys).flatMap(([what, key]) => {
      const hex = key.toString('hex')
      const forms = [key, hex, hex.toUpperCase(), key.toString('base64').replace(/=+$/, ''), key.toString('base64url')]
      return forms.some((form) => bytes.includes(form)) ? [`${name}: ${what}`] : []
    }),
  )
}
