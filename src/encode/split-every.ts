/** Bytes in parts of one size, as raw frames are; what is left at the end is dropped. In constant memory. */
export async function* splitEvery(bytes: AsyncIterable<Buffer>, sizeBytes: number): AsyncGenerator<Buffer, void, undefined> {
  let parts: Buffer[] = []
  let bufferedBytes = 0
  for await (const part of bytes) {
    parts.push(part)
    bufferedBytes += part.length
    if (bufferedBytes < sizeBytes) continue
    let rest: Buffer = parts.length === 1 ? part : Buffer.concat(parts)
    for (; rest.length >= sizeBytes; rest = rest.subarray(sizeBytes)) yield rest.subarray(0, sizeBytes)
    parts = rest.length > 0 ? [rest] : []
    bufferedBytes = rest.length
  }
}
