import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { untilFinished } from '../data-folder.ts'
import { beginImport, makeLargeVideo, sendFile } from '../ingest/import-host.ts'
import { startReelgate } from '../reelgate.ts'
import { openWorld } from '../ssrf/network-namespace.ts'
import { makeVideo } from '../videos.ts'
import { type Call, getCall, readTrace } from './trace.ts'
import { newFolder } from './videos.ts'

// What is traced is our process: a commit shows in it as a sync where the database is its own, SQLite. The order is the same on both.

test('F-29, F-30: the 201 leaves after the video’s file, its name and its row are on the disk, in this order; segments, posters and the master key as well', async () => {
  const trace = join(await newFolder(), 'trace')
  const traced = 'trace=write,writev,pwrite64,sendto,sendmsg,fsync,fdatasync,rename,link,linkat'
  const reelgate = await startReelgate({
    database: 'sqlite',
    wrapper: ['strace', '-D', '-f', '--seccomp-bpf', '-qq', '-y', '-s', '24', '-e', traced, '-o', trace],
  })
  const videoId = await reelgate.owner.upload('A video', await makeVideo({ seconds: 6 }))
  await untilFinished(reelgate, videoId)
  await reelgate.stop()
  const calls = readTrace(await readFile(trace, 'utf8'))
  const source = getCall(calls, 'rename', new RegExp(`/tmp/\\w+", ".*/sources/${videoId}/`))
  const answer = getCall(calls, 'write|writev|sendto|sendmsg', /HTTP\/1\.1 201/)
  const committed = committedAfter(calls, source)
  expect(committed.end).toBeLessThan(answer.start)

  const segments = calls.filter(({ text }) => /^rename\(".*\/segments\//.test(text))
  expect(segments.length).toBeGreaterThan(3)
  for (const segment of segments) committedAfter(calls, segment)
  const posters = calls.filter(({ text }) => /^rename\(".*\/posters\//.test(text))
  expect(posters.length).toBeGreaterThanOrEqual(2) // the first chunk and the video’s end may draw them concurrently; the later pair is taken away
  for (const poster of posters) committedAfter(calls, poster)

  // Nothing is bound to a master key that a power cut could take.
  const keyWritten = getCall(calls, 'write|pwrite64', /data\.key/)
  const keySynced = getCall(calls, 'fsync', /data\.key/, keyWritten.end)
  const keyLinked = getCall(calls, 'link|linkat', /data\.key/, keySynced.end)
  const keyNamed = getCall(calls, 'fsync', new RegExp(`<${dirname(reelgate.dataDir)}>`), keyLinked.end)
  getCall(calls, 'fsync|fdatasync', /reelgate\.db-wal>/, keyNamed.end)
})

test('F-29: what an import has received is on the disk, with its name, before the database says so', async () => {
  const trace = join(await newFolder(), 'trace')
  const world = await openWorld()
  const video = await makeLargeVideo(20e6)
  world.names.set('videos.example', ['8.8.8.8'])
  await world.site('8.8.8.8', (request, response) => sendFile(request, response, video, { etag: '"1"' }))
  const { wrapper = [], env } = await world.around()
  const strace = [
    'strace',
    '-D',
    '-f',
    '--seccomp-bpf',
    '-qq',
    '-y',
    '-s',
    '24',
    '-e',
    'trace=write,writev,pwrite64,fsync,fdatasync',
    '-o',
    trace,
  ]
  const reelgate = await startReelgate({ database: 'sqlite', env, wrapper: [...wrapper, ...strace] })
  const id = await beginImport(reelgate.owner, 'http://videos.example/a.mp4')
  await reelgate.owner.until(id, 'ready')
  await reelgate.stop()
  const calls = readTrace(await readFile(trace, 'utf8'))
  const written = calls.filter(({ text }) => /^(write|pwrite64|writev)\(/.test(text) && text.includes(`/sources/${id}/`))
  const synced = calls.filter(({ text }) => /^fsync\(/.test(text) && text.includes(`/sources/${id}/`))
  // Its folder's name and its own, two steps of 8 MiB, and its end; each of its last three before a commit.
  const folder = getCall(calls, 'fsync', new RegExp(`/sources/${id}>`))
  const root = getCall(calls, 'fsync', /\/sources>/, folder.start)
  expect(root.end).toBeLessThan(written[0]?.start ?? 0)
  expect(synced).toHaveLength(3)
  expect(synced.at(-1)?.start).toBeGreaterThan(written.at(-1)?.end ?? Number.POSITIVE_INFINITY)
  for (const sync of synced) getCall(calls, 'fsync|fdatasync', /reelgate\.db-wal>/, sync.end)
})

/** The commit that follows a file's rename, once its bytes, its name and the names of its folders are on the disk, in this order. */
function committedAfter(calls: readonly Call[], rename: Call): Call {
  const [, unfinished = '', folder = '', root = ''] =
    /"\S+\/tmp\/(\w+)", "((\S+\/(?:sources|segments|posters))\/\S+)\/[^/]+"/.exec(rename.text) ?? []
  const written = calls.findLast(({ text }) => /^(write|pwrite64|writev)/.test(text) && text.includes(`/tmp/${unfinished}>`))
  const synced = getCall(calls, 'fsync', new RegExp(`/tmp/${unfinished}>`), written?.end)
  expect(synced.end).toBeLessThan(rename.start)
  const ends = foldersUpTo(folder, root).map((name) => getCall(calls, 'fsync', new RegExp(`<${name}>`), rename.end).end)
  return getCall(calls, 'fsync|fdatasync', /reelgate\.db-wal>/, Math.max(...ends))
}

/** A new folder is a name too. */
function foldersUpTo(folder: string, root: string): string[] {
  return folder === root ? [root] : [folder, ...foldersUpTo(dirname(folder), root)]
}
