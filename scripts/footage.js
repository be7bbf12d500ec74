// Fetches the videos of test/footage.ts: real footage with its real faults, from Debian packages, never committed.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { unpackDebian } from './debian.js'
import { isMain, root, runMain, say } from './run.js'

const FOLDER = join(root, '.cache/footage')

const VIDEOS = [
  {
    // 180 s of 480×352 at 30000/1001, AAC: long enough for many chunks
    package: 'openboard-common',
    path: 'usr/share/openboard/library/videos/wannaworktogether.mp4',
    sha256: '0659d8c895e01fd01490dc55d2ff9117fb8f3f19b3e1b8198856d8c0e3d612fb',
  },
  {
    // 8 s of 1280×720 at 30 from a camera, AAC
    package: 'forensics-samples-files',
    path: 'usr/share/forensics-samples/original-files/movie2/movie-hello.mp4',
    sha256: '68162af4e15b20fb61261e55de79e989f53d6295f6226b4bda1905b8c40e9676',
  },
  {
    // 14 s of 1280×720 at 20, 4:4:4, MP3 at 16 kHz: its second key frame does not decode alone
    package: 'python3-imageio',
    path: 'usr/lib/python3/dist-packages/imageio/resources/images/cockatoo.mp4',
    sha256: '5fde35f5a288ca86e216d2dc28188ab64b4560d3021f273faefdf0de80f38aa5',
  },
]

/** Fetches missing videos. Safe to run concurrently: a video is renamed to its final name after it was verified. */
export async function fetchFootage() {
  mkdirSync(FOLDER, { recursive: true })
  for (const video of VIDEOS.filter(isMissing)) {
    say(`Fetching ${basename(video.path)} from the Debian package ${video.package}`)
    await fetchVideo(video)
  }
}

export function isFootageMissing() {
  return VIDEOS.some(isMissing)
}

function isMissing(video) {
  return !existsSync(pathFor(video))
}

function pathFor(video) {
  return join(FOLDER, basename(video.path))
}

async function fetchVideo(video) {
  const work = mkdtempSync(join(root, '.cache/fetch-'))
  try {
    const unpacked = join(await unpackDebian(video.package, work), video.path)
    const sha256 = createHash('sha256').update(readFileSync(unpacked)).digest('hex')
    if (sha256 !== video.sha256) {
      throw new Error(
        `${video.path} of ${video.package} is not the video that the tests expect: its SHA-256 is ${sha256}, not ${video.sha256}.`,
      )
    }
    renameSync(unpacked, pathFor(video))
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

if (isMain(import.meta.filename)) await runMain(fetchFootage)
