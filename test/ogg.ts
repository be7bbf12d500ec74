import { readFile, writeFile } from 'node:fs/promises'

// Ogg files with the faults of damaged disks and odd recorders (RFC 3533).

type Stream = 'video' | 'audio'
/** A page: its 27 bytes of header, a table of lacing values, and the packets' bytes. */
type Page = { header: Buffer; lacing: Buffer; body: Buffer }

/**
 * Makes what a stream holds from a part of its pages on undecodable.
 * @param fault.checksum whether the pages are as broken as their bytes, so that readers drop them, or only their packets
 */
export async function damageOgg(
  file: string,
  fault: { stream: Stream; from: number; checksum: 'right' | 'wrong' },
): Promise<void> {
  await editStream(file, fault.stream, (pages) => {
    for (const page of pages.slice(Math.floor(pages.length * fault.from))) {
      page.body.fill(0xff)
      if (fault.checksum === 'right') seal(page)
    }
  })
}

/** Puts a hundred empty packets before the others on each page of the sound, as some recorders did. */
export async function addEmptyPackets(file: string): Promise<void> {
  await editStream(file, 'audio', (pages) => {
    for (const page of pages) {
      page.lacing = Buffer.concat([Buffer.alloc(Math.min(100, 255 - page.lacing.length)), page.lacing])
      page.header[26] = page.lacing.length
      seal(page)
    }
  })
}

async function editStream(file: string, stream: Stream, edit: (pages: Page[]) => void): Promise<void> {
  const pages = [...readPages(await readFile(file))]
  const serial = (page: Page) => page.header.readUInt32LE(14)
  const firsts = pages.filter(({ header }) => (header[5] ?? 0) & 2)
  const first = firsts.find(({ body }) => body.includes('theora') === (stream === 'video'))
  if (!first) throw new Error(`${file} has no ${stream}`)
  // Pages at time 0 hold the headers.
  edit(pages.filter((page) => serial(page) === serial(first) && page.header.readBigInt64LE(6) > 0n))
  await writeFile(file, Buffer.concat(pages.flatMap(({ header, lacing, body }) => [header, lacing, body])))
}

function* readPages(bytes: Buffer): Generator<Page> {
  for (let at = 0; at < bytes.length; ) {
    if (bytes.toString('latin1', at, at + 4) !== 'OggS') throw new Error(`no page at ${at}`)
    const header = bytes.subarray(at, at + 27)
    const lacing = bytes.subarray(at + 27, at + 27 + (header[26] ?? 0))
    const bodyAt = at + 27 + lacing.length
    const body = bytes.subarray(bodyAt, bodyAt + lacing.reduce((sum, length) => sum + length, 0))
    yield { header, lacing, body }
    at = bodyAt + body.length
  }
}

/** Gives a page the checksum of its bytes: polynomial 0x04c11db7, not reflected. */
function seal({ header, lacing, body }: Page): void {
  header.writeUInt32LE(0, 22)
  let crc = 0
  for (const byte of Buffer.concat([header, lacing, body])) {
    crc ^= byte << 24
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x80000000 ? (crc << 1) ^ 0x04c11db7 : crc << 1
  }
  header.writeUInt32LE(crc >>> 0, 22)
}
