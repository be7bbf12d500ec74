/** Yields the same bytes until there are more than `maxBytes`. @throws the error of `tooLong` in place of the part that exceeds the limit */
export async function* limitBytes(
  bytes: AsyncIterable<Buffer>,
  maxBytes: number,
  tooLong: () => Error,
): AsyncGenerator<Buffer, void, undefined> {
  let sizeBytes = 0
  for await (const part of bytes) {
    sizeBytes += part.length
    if (sizeBytes > maxBytes) throw tooLong()
    yield part
  }
}
