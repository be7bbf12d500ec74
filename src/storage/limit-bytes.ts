import { Readable } from 'node:stream'
import { Failure } from '../errors.ts'

/** The same bytes, until there are too many. @param what begins the sentence, such as `A poster` */
export function limitBytes(bytes: Readable, maxBytes: number, what: string): Readable {
  async function* counted(): AsyncGenerator<Buffer> {
    let sizeBytes = 0
    for await (const part of bytes) {
      sizeBytes += part.length
      if (sizeBytes > maxBytes) throw new Failure('too-large', `${what} has at most ${maxBytes / 2 ** 20} MiB.`)
      yield part
    }
  }
  return Readable.from(counted())
}
