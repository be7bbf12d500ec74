import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { mkdir, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { hasRoomIn } from '../../storage/space.ts'
import { writeWhole } from '../../storage/write-whole.ts'
import { MAX_RANGE_BYTES, type TaskBody } from '../protocol.ts'

/** Both ends inclusive. */
export type Range = { first: number; last: number }
type ReadSource = (range: Range) => Promise<Buffer>

/** Parts of sources on this machine's disk, sealed as they came. What was not fetched reads as zeros. */
export type SourceCopies = {
  /** Gives a copy that has at least the parts that `fill` asked for. It is kept as long as it is used. */
  use<T>(source: TaskBody['source'], read: ReadSource, work: (copy: SourceCopy) => Promise<T>): Promise<T>
  close(): Promise<void>
}

export type SourceCopy = {
  path: string
  /** Fetches what is missing of a range. */
  fetch(range: Range): Promise<void>
  /** Bytes of a range that was fetched. */
  read(range: Range): Promise<Buffer>
}

type Entry = { path: string; blocks: Set<number>; users: number; queue: Promise<unknown> }

/** What is fetched is a whole number of these. */
const BLOCK_BYTES = 64 * 1024
const BLOCKS_A_REQUEST = MAX_RANGE_BYTES / BLOCK_BYTES

/** Opens an empty folder; what an earlier run left there is removed. */
export async function openSourceCopies(folder: string, maxBytes: number): Promise<SourceCopies> {
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true, mode: 0o700 })
  /** By source, in the order of their last use. */
  const entries = new Map<string, Entry>()

  async function makeRoom(): Promise<void> {
    let usedBytes = [...entries.values()].reduce((sum, { blocks }) => sum + blocks.size * BLOCK_BYTES, 0)
    for (const [key, { path, blocks, users }] of [...entries]) {
      if (usedBytes <= maxBytes && (await hasRoomIn([folder], 0))) return
      if (users > 0) continue
      entries.delete(key)
      usedBytes -= blocks.size * BLOCK_BYTES
      await rm(path, { force: true })
    }
  }

  /** @param read limited to the task that fetches */
  function openEntry(entry: Entry, sealedBytes: number, read: ReadSource): SourceCopy {
    async function fetchMissing({ first, last }: Range): Promise<void> {
      await using file = await open(entry.path, constants.O_RDWR | constants.O_CREAT, 0o600)
      await file.truncate(sealedBytes) // sparse
      const end = Math.min(Math.floor(last / BLOCK_BYTES), Math.floor((sealedBytes - 1) / BLOCK_BYTES))
      for (let block = Math.floor(first / BLOCK_BYTES); block <= end; ) {
        let count = 0
        while (block + count <= end && count < BLOCKS_A_REQUEST && !entry.blocks.has(block + count)) count++
        if (count > 0) {
          const at = block * BLOCK_BYTES
          const wanted = { first: at, last: Math.min(sealedBytes, at + count * BLOCK_BYTES) - 1 }
          const bytes = await read(wanted)
          if (bytes.length !== wanted.last - wanted.first + 1)
            throw new Error('the server sent another part of the source than was asked for')
          await writeWhole(file, bytes, at)
          for (let n = 0; n < count; n++) entry.blocks.add(block + n)
        }
        block += Math.max(1, count)
      }
    }
    return {
      path: entry.path,
      fetch(range) {
        // One after another: two chunks of a video need the same head of the file.
        const fetched = entry.queue.catch(() => undefined).then(() => fetchMissing(range))
        entry.queue = fetched
        fetched.catch(() => undefined)
        return fetched
      },
      async read({ first, last }) {
        await using file = await open(entry.path, 'r')
        const bytes = Buffer.alloc(last - first + 1)
        await file.read(bytes, 0, bytes.length, first)
        return bytes
      },
    }
  }

  return {
    async use(source, read, work) {
      const key = `${source.ivHex} ${source.sealedBytes}`
      const entry = entries.get(key) ?? {
        ...{ path: join(folder, randomBytes(16).toString('hex')), blocks: new Set<number>(), users: 0, queue: Promise.resolve() },
      }
      entries.delete(key)
      entries.set(key, entry)
      entry.users++
      try {
        await makeRoom()
        return await work(openEntry(entry, source.sealedBytes, read))
      } finally {
        entry.users--
        await makeRoom()
      }
    },
    close: () => rm(folder, { recursive: true, force: true }),
  }
}
