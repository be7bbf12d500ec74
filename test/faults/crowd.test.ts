import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { type Reelgate, startReelgate as startInProcess } from '../in-process.ts'
import { anonymousMiB } from '../memory.ts'
import { startReelgate } from '../reelgate.ts'
import { rounds } from '../seeded-random.ts'
import { makeVideo } from '../videos.ts'
import { readMediaPlaylist, type Viewer } from '../viewer.ts'

// Many clients that are slow, idle or ask for much, next to one viewer who watches.

const SLOW_READERS = rounds(60, 500)
const IDLE_CONNECTIONS = rounds(1_000, 16_000)
const LISTS = rounds(60, 1_000)
const BROKEN_DOWNLOADS = rounds(100, 10_000)

test(`F-21: ${SLOW_READERS} clients that read segments slowly hold no segments in memory, and a viewer continues to play`, async () => {
  const reelgate = await startReelgate({ video: await makeVideo({ seconds: 15, rate: 10, size: '320x240' }) })
  const viewer = await newPlayingViewer(reelgate)
  const { path, size } = await largestSegment(viewer)
  const beforeMiB = await anonymousMiB(reelgate.pid)
  const readers = await Promise.all(
    Array.from({ length: SLOW_READERS }, async () => {
      const socket = await openConnection(reelgate.url)
      // Each asks for many segments one after the other, and reads the first bytes of the first.
      socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(50))
      await once(socket, 'data')
      socket.pause()
      return socket
    }),
  )
  for (let round = 0; round < 10; round++) expect((await viewer.key(0)).status).toBe(200)
  const growthMiB = (await anonymousMiB(reelgate.pid)) - beforeMiB
  const requestedMiB = (SLOW_READERS * 50 * size) / 2 ** 20
  expect(growthMiB).toBeLessThan(Math.min(200, requestedMiB / 4))
  for (const socket of readers) expect(socket.destroyed).toBe(false)
})

test(`F-22: ${BROKEN_DOWNLOADS} clients that break off a download leave no open file and no connection`, async () => {
  const reelgate = await startReelgate({ video: await makeVideo({ seconds: 15, rate: 10, size: '320x240' }) })
  const { path } = await largestSegment(await newPlayingViewer(reelgate))
  const openFiles = async () => (await readdir(`/proc/${reelgate.pid}/fd`)).length
  const before = await openFiles()
  for (let made = 0; made < BROKEN_DOWNLOADS; made += 50)
    await Promise.all(
      Array.from({ length: 50 }, async (_, n) => {
        const socket = await openConnection(reelgate.url)
        socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
        if (n % 2) await once(socket, 'data') // in the middle of it, or before it begins
        socket.resetAndDestroy()
      }),
    )
  await expect.poll(openFiles).toBeLessThan(before + 20)
})

test(`E01: next to ${IDLE_CONNECTIONS} idle connections a viewer continues to play`, async () => {
  const reelgate = await startReelgate({ video: await makeVideo() })
  const viewer = await newPlayingViewer(reelgate)
  const perAddress = 2_000
  for (let opened = 0; opened < IDLE_CONNECTIONS; opened += 200) {
    const address = `127.0.0.${2 + Math.floor(opened / perAddress)}`
    await Promise.all(Array.from({ length: 200 }, () => openConnection(reelgate.url, address)))
  }
  expect((await viewer.key(0)).status).toBe(200)
  expect((await reelgate.newViewer().redeem(await reelgate.owner.issueOtp(reelgate.videoId))).playing).toBe(true)
})

test(`E02: while ${LISTS} large lists are requested together, all are sent, and a viewer continues to play`, async () => {
  const reelgate = await startInProcess({ video: await makeVideo() })
  const { owner } = reelgate
  for (let made = 0; made < 100; made += 20) {
    await Promise.all(Array.from({ length: 20 }, (_, index) => owner.credentials(`Video ${made + index}`)))
  }
  const viewer = await newPlayingViewer(reelgate)
  const lists = Array.from({ length: LISTS }, () => owner.list('?limit=40&page=3'))
  for (let round = 0; round < 10; round++) expect((await viewer.key(0)).status).toBe(200)
  for (const { rows } of await Promise.all(lists)) expect(rows).toHaveLength(21)
})

async function newPlayingViewer({ owner, videoId, newViewer }: Reelgate): Promise<Viewer> {
  const viewer = newViewer()
  expect((await viewer.redeem(await owner.issueOtp(videoId))).playing).toBe(true)
  return viewer
}

async function largestSegment(viewer: Viewer): Promise<{ path: string; size: number }> {
  const [, rendition = ''] = /^(\d+)$/m.exec(await viewer.playlist('main')) ?? []
  const { segments } = readMediaPlaylist(await viewer.playlist(rendition))
  const sized = await Promise.all(
    segments.map(async ({ uri }) => {
      const address = new URL(uri, `${viewer.url}/play/${viewer.state.session}/playlist/`)
      const bytes = await (await fetch(address)).arrayBuffer()
      return { path: address.pathname, size: bytes.byteLength }
    }),
  )
  return sized.reduce((largest, segment) => (segment.size > largest.size ? segment : largest))
}

/** A connection that is closed when the test has finished. */
async function openConnection(url: string, localAddress = '127.0.0.1'): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), localAddress })
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => undefined) // destroyed with the test
  await once(socket, 'connect')
  return socket
}
