// A server in small, for the test that kills one: encodes the video on its standard input, says when the first segment is there.
import { text } from 'node:stream/consumers'
import { encodeVideoChunk } from '../../src/encode/chunk.ts'
import { withFile } from './sealed-source.ts'

const { file, source, ...video } = JSON.parse(await text(process.stdin))
const onSegment = () => {
  process.stdout.write('segment\n')
}
await encodeVideoChunk(
  {
    ...video,
    source: withFile(source, file),
    threads: 1,
    chunk: { firstSegment: 0, segmentCount: 1000, decodesFromStart: true },
  },
  { onInit: () => {}, onSegment },
)
