import { createCipheriv, createDecipheriv, createHash, createHmac, type Hash, randomBytes, subtle } from 'node:crypto'
import { existsSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { Transform, type TransformCallback } from 'node:stream'
import { equalsInConstantTime } from './constant-time.ts'
import { deriveKey } from './master-key.ts'

/**
 * A sealed file that ffmpeg can read with seeks: AES-128-CBC with a key of its own, PKCS#7 at the end.
 * CBC does not detect changed bytes, so an HMAC-SHA-256 for each MiB of ciphertext is stored, too.
 */
export type Seal = { key: Buffer; iv: Buffer }

const MAC_BLOCK_BYTES = 2 ** 20
const MAC_BYTES = 32
const CIPHER_BLOCK_BYTES = 16

export function newSeal(): Seal {
  return { key: randomBytes(16), iv: randomBytes(16) }
}

/** Size and checksums of a file after sealing. */
export type Sealed = { sizeBytes: number; sha256: Buffer; macs: Buffer }

/** Seals a file piece by piece in constant memory; counts, hashes and authenticates on the way. */
export type Sealing = {
  /** @returns whole cipher blocks: what is left of the clear bytes waits for the next piece */
  add(clear: Buffer): Buffer
  /** Of all clear bytes added so far. */
  sizeBytes(): number
  sha256(): Buffer
  /** Ends the file. `last` are its last sealed bytes. */
  end(): Sealed & { last: Buffer }
}

export function beginSealing(seal: Seal): Sealing {
  return goOnSealing(seal, { sizeBytes: 0, hash: createHash('sha256'), macs: new MacBlocks(seal), chainedIv: seal.iv })
}

type Begun = { sizeBytes: number; hash: Hash; macs: MacBlocks; chainedIv: Buffer }

function goOnSealing(seal: Seal, { sizeBytes, hash, macs, chainedIv }: Begun): Sealing {
  const cipher = createCipheriv('aes-128-cbc', seal.key, chainedIv)
  const authenticated = (bytes: Buffer) => {
    macs.add(bytes)
    return bytes
  }
  return {
    add(clear) {
      hash.update(clear)
      sizeBytes += clear.length
      return authenticated(cipher.update(clear))
    },
    sizeBytes: () => sizeBytes,
    sha256: () => hash.copy().digest(),
    end() {
      const last = authenticated(cipher.final())
      return { last, sizeBytes, sha256: hash.digest(), macs: macs.end() }
    },
  }
}

/**
 * Resumes a file whose first `sizeBytes` are sealed at a path: reads them once. CBC continues from the last sealed block.
 * @param known size, a multiple of 16, and SHA-256 of those clear bytes
 * @returns undefined when the file does not hold them as they were written
 */
export async function resumeSealing(
  path: string,
  seal: Seal,
  known: Pick<Sealed, 'sizeBytes' | 'sha256'>,
  signal?: AbortSignal,
): Promise<Sealing | undefined> {
  if (!existsSync(path)) return undefined
  const begun = { sizeBytes: known.sizeBytes, hash: createHash('sha256'), macs: new MacBlocks(seal), chainedIv: seal.iv }
  const decipher = createDecipheriv('aes-128-cbc', seal.key, seal.iv).setAutoPadding(false)
  await using file = await open(path)
  const upTo = { start: 0, end: known.sizeBytes - 1, highWaterMark: MAC_BLOCK_BYTES, autoClose: false }
  for await (const bytes of file.createReadStream(upTo)) {
    signal?.throwIfAborted()
    begun.macs.add(bytes)
    begun.hash.update(decipher.update(bytes))
    begun.chainedIv = bytes.subarray(-CIPHER_BLOCK_BYTES)
  }
  const isThere = begun.hash.copy().digest().equals(known.sha256)
  return isThere ? goOnSealing(seal, begun) : undefined
}

/** Clear bytes in, sealed bytes out. */
export class SealingStream extends Transform {
  readonly #sealing: Sealing
  #sealed: Sealed | undefined

  constructor(seal: Seal) {
    super({ highWaterMark: 2 ** 18 })
    this.#sealing = beginSealing(seal)
  }

  /** Only after the stream has ended. */
  get sealed(): Sealed {
    if (!this.#sealed) throw new Error('the sealed stream has not ended')
    return this.#sealed
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    done(null, this.#sealing.add(chunk))
  }

  override _flush(done: TransformCallback): void {
    const { last, ...sealed } = this.#sealing.end()
    this.#sealed = sealed
    done(null, last)
  }
}

/** Cuts a byte stream into blocks of a MiB and signs each with its number. */
class MacBlocks {
  readonly #key: Buffer
  readonly #done: Buffer[] = []
  #hmac
  #room = MAC_BLOCK_BYTES

  constructor(seal: Seal) {
    this.#key = deriveKey(seal.key, 'reelgate source-mac 1', 32)
    this.#hmac = this.#newBlock()
  }

  add(bytes: Buffer): void {
    for (let rest = bytes; rest.length > 0; ) {
      const part = rest.subarray(0, this.#room)
      this.#hmac.update(part)
      this.#room -= part.length
      rest = rest.subarray(part.length)
      if (this.#room === 0) this.#finishBlock()
    }
  }

  end(): Buffer {
    if (this.#room < MAC_BLOCK_BYTES) this.#finishBlock()
    return Buffer.concat(this.#done)
  }

  #finishBlock(): void {
    this.#done.push(this.#hmac.digest())
    this.#hmac = this.#newBlock()
    this.#room = MAC_BLOCK_BYTES
  }

  #newBlock() {
    return createHmac('sha256', this.#key).update(String(this.#done.length))
  }
}

/** Compares the bytes of a sealed file, which it is given in their order, with those that were sealed. */
export function checkSeal(seal: Seal, macs: Buffer): { add(bytes: Buffer): void; isIntact(): boolean } {
  const found = new MacBlocks(seal)
  return {
    add: (bytes) => found.add(bytes),
    isIntact() {
      const now = found.end()
      return now.length % MAC_BYTES === 0 && equalsInConstantTime(now, macs)
    },
  }
}

/** Whether a sealed file is there and, byte for byte, the one that was sealed. Reads it once, a MiB at a time. */
export async function isSealIntact(path: string, seal: Seal, macs: Buffer, signal?: AbortSignal): Promise<boolean> {
  if (!existsSync(path)) return false
  const check = checkSeal(seal, macs)
  await using file = await open(path)
  for await (const bytes of file.createReadStream({ highWaterMark: MAC_BLOCK_BYTES, autoClose: false })) {
    signal?.throwIfAborted()
    check.add(bytes)
  }
  return check.isIntact()
}

/**
 * The clear bytes of a part of a sealed file, a MiB at a time: CBC can be opened at any block. Each MiB is verified before anything of
 * it is given.
 * @param range of clear bytes, both ends inclusive
 * @throws Error when the file is not the one that was sealed
 */
export async function* readSealed(
  file: FileHandle,
  { key, iv }: Seal,
  macs: Buffer,
  range: { first: number; last: number },
): AsyncGenerator<Buffer> {
  const verify = await openVerifier(deriveKey(key, 'reelgate source-mac 1', 32), macs)
  const firstBlock = Math.floor(range.first / MAC_BLOCK_BYTES)
  // CBC deciphers a block with the last bytes of the block before it, so these are verified, too.
  let before = firstBlock === 0 ? iv : (await readBlock(file, firstBlock - 1, verify)).subarray(-CIPHER_BLOCK_BYTES)
  for (let number = firstBlock; number * MAC_BLOCK_BYTES <= range.last; number++) {
    const sealed = await readBlock(file, number, verify)
    const clear = createDecipheriv('aes-128-cbc', key, before).setAutoPadding(false).update(sealed)
    const startsAt = number * MAC_BLOCK_BYTES
    yield clear.subarray(Math.max(0, range.first - startsAt), range.last + 1 - startsAt)
    before = sealed.subarray(-CIPHER_BLOCK_BYTES)
  }
}

type Verify = (number: number, sealed: Buffer) => Promise<boolean>

/** Verifies on another thread: a MiB takes a millisecond or more, and others wait for this one. */
async function openVerifier(key: Buffer, macs: Buffer): Promise<Verify> {
  const imported = await subtle.importKey('raw', new Uint8Array(key), { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
  return (number, sealed) => {
    const mac = new Uint8Array(macs.subarray(number * MAC_BYTES, (number + 1) * MAC_BYTES))
    return subtle.verify('HMAC', imported, mac, Buffer.concat([Buffer.from(String(number)), sealed]))
  }
}

async function readBlock(file: FileHandle, number: number, verify: Verify): Promise<Buffer> {
  const buffer = Buffer.alloc(MAC_BLOCK_BYTES)
  const { bytesRead } = await file.read(buffer, 0, MAC_BLOCK_BYTES, number * MAC_BLOCK_BYTES)
  const sealed = buffer.subarray(0, bytesRead)
  if (!(await verify(number, sealed))) throw new Error('a sealed file was changed on the disk')
  return sealed
}
