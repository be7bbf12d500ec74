import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { untilFinished } from '../data-folder.ts'
import { makeFilm } from '../films.ts'
import { startReelgate } from '../reelgate.ts'
import { newFolder } from './films.ts'

test('F-29, F-30: the 201 leaves after the film’s file, its name and its row are on the disk, in this order; segments, posters and the master key as well', async () => {
  const trace = join(await newFolder(), 'trace')
  const traced = 'trace=write,writev,pwrite64,sendto,sendmsg,fsync,fdatasync,rename,link,linkat'
  const reelgate = await startReelgate({ wrapper: ['strace', '-D', '-f', '-qq', '-y', '-s', '24', '-e', traced, '-o', trace] })
  const videoId = await reelgate.owner.upload('A film', await makeFilm({ seconds: 6 }))
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
  expect(posters.length).toBeGreaterThanOrEqual(2) // the first chunk and the film’s end may draw them at once; the later pair is taken away
  for (const poster of posters) committedAfter(calls, poster)

  // Nothing is bound to a master key that a power cut could take.
  const keyWritten = getCall(calls, 'write|pwrite64', /data\.key/)
  const keySynced = getCall(calls, 'fsync', /data\.key/, keyWritten.end)
  const keyLinked = getCall(calls, 'link|linkat', /data\.key/, keySynced.end)
  const keyNamed = getCall(calls, 'fsync', new RegExp(`<${dirname(reelgate.dataDir)}>`), keyLinked.end)
  getCall(calls, 'fsync|fdatasync', /reelgate\.db-wal>/, keyNamed.end)
})

type Call = { text: string; start: number; end: number }

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

/** The first such call that begins after a place of the trace. */
function getCall(calls: readonly Call[], names: string, pattern: RegExp, after = -1): Call {
  const found = calls.find(({ text, start }) => start > after && new RegExp(`^(${names})\\(`).test(text) && pattern.test(text))
  if (!found) throw new Error(`no ${names} like ${pattern} after line ${after} of the trace`)
  return found
}

/** Calls with the lines on which they begin and end: threads interrupt each other in the trace. */
function readTrace(trace: string): Call[] {
  const calls: Call[] = []
  const open = new Map<string, Call>()
  for (const [at, line] of trace.split('\n').entries()) {
    const [, pid = '', rest = ''] = /^(\d+)\s+(.*)$/.exec(line) ?? []
    if (rest.startsWith('<...')) {
      const call = open.get(pid)
      if (call) call.end = at
      continue
    }
    const call = { text: rest, start: at, end: at }
    calls.push(call)
    if (rest.endsWith('<unfinished ...>')) open.set(pid, call)
  }
  return calls
}
