import { Failure } from '../errors.ts'
import { limitBytes } from '../limit-bytes.ts'
import { MAX_SEGMENT_BYTES } from './protocol.ts'

/** The bytes of a segment, or of an init segment. @param onPart called while they arrive. @throws Failure `too-large` */
export async function receiveSegment(body: AsyncIterable<Buffer>, onPart?: () => void): Promise<Buffer> {
  const parts: Buffer[] = []
  const tooLarge = () => new Failure('too-large', `A segment has at most ${MAX_SEGMENT_BYTES} bytes.`)
  for await (const part of limitBytes(body, MAX_SEGMENT_BYTES, tooLarge)) {
    parts.push(part)
    onPart?.()
  }
  return Buffer.concat(parts)
}
