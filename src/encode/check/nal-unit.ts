/** Takes out the byte 3 that follows two zeros where the next is at most 3: 14496-10, 7.3.1. */
export function removeEscapes(bytes: Buffer): Buffer {
  const isEscape = (index: number) => bytes[index] === 3 && index > 1 && bytes[index - 1] === 0 && bytes[index - 2] === 0
  return Buffer.from(bytes.filter((_, index) => !isEscape(index)))
}
