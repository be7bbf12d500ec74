// A server in small, for the test that takes its files away: runs ffmpeg on the video on its standard input with ever fewer files free.
import { getEventListeners } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { collect } from '../../src/sandbox/child-process.ts'
import { runMedia } from '../../src/sandbox/run.ts'
import { withFile } from './sealed-source.ts'

const { sandbox, file, ...sent } = JSON.parse(await text(process.stdin))
const source = withFile(sent.source, file)
const { signal } = new AbortController()

async function drawFrame(): Promise<string> {
  const frame = collect(2 ** 20)
  const outputArgs = ['-map', '0:v:0', '-frames:v', '1', '-f', 'rawvideo', 'pipe:3']
  const limits = { cpuS: 20, wallS: 60 }
  try {
    const end = await runMedia(sandbox, { tool: 'ffmpeg', source, outputArgs, pipes: [frame.reader], limits, signal })
    return `${end.exitCode}: ${frame.bytes().length} bytes`
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error)
  }
}

function takeFiles(): number[] {
  const files: number[] = []
  for (;;) {
    try {
      files.push(openSync('/dev/null', 'r'))
    } catch {
      return files
    }
  }
}

const outcomes = [await drawFrame()]
const taken = takeFiles()
for (const _ of Array(12)) {
  outcomes.push(await drawFrame())
  closeSync(taken.pop() ?? -1)
}
for (const file of taken) closeSync(file)
outcomes.push(await drawFrame())
// Timers that are left would keep it from ending.
process.stdout.write(JSON.stringify({ outcomes, listeners: getEventListeners(signal, 'abort').length }))
