import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { existsSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { Transform, type TransformCallback } from 'node:stream'
import { deriveKey } from './master-key.ts'

/**
 * A file that ffmpeg reads with seeks while it lies sealed: AES-128-CBC with a key of its own, PKCS#7 at the end.
 * CBC does not notice changed bytes, so an HMAC-SHA-256 for each MiB of ciphertext is kept beside it.
 */
export type Seal = { key: Buffer; iv: Buffer }

const MAC_BLOCK_BYTES = 2 ** 20
const MAC_BYTES = 32

export function newSeal(): Seal {
  return { key: randomBytes(16), iv: randomBytes(16) }
}

/** What a `SealingStream` knows once it has ended. */
export type Sealed = { sizeBytes: number; sha256: Buffer; macs: Buffer }

/** Clear bytes in, sealed bytes out; counts, hashes and authenticates on the way, in constant memory. */
export class SealingStream extends Transform {
  readonly #cipher
  readonly #macs: MacBlocks
  readonly #hash = createHash('sha256')
  #sizeBytes = 0
  #sealed: Sealed | undefined

  constructor(seal: Seal) {
    super({ highWaterMark: 2 ** 18 })
    this.#cipher = createCipheriv('aes-128-cbc', seal.key, seal.iv)
    this.#macs = new MacBlocks(seal)
  }

  /** Only after the stream has ended. */
  get sealed(): Sealed {
    if (!this.#sealed) throw new Error('the sealed stream has not ended')
    return this.#sealed
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#hash.update(chunk)
    this.#sizeBytes += chunk.length
    done(null, this.#authenticated(this.#cipher.update(chunk)))
  }

  override _flush(done: TransformCallback): void {
    const last = this.#authenticated(this.#cipher.final())
    this.#sealed = { sizeBytes: this.#sizeBytes, sha256: this.#hash.digest(), macs: this.#macs.end() }
    done(null, last)
  }

  #authenticated(bytes: Buffer): Buffer {
    this.#macs.add(bytes)
    return bytes
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

/** Whether a sealed file is there and, byte for byte, the one that was sealed. Reads it once, a MiB at a time. */
export async function isSealIntact(path: string, seal: Seal, macs: Buffer, signal?: AbortSignal): Promise<boolean> {
  if (!existsSync(path)) return false
  const found = new MacBlocks(seal)
  await using file = await open(path)
  for await (const bytes of file.createReadStream({ highWaterMark: MAC_BLOCK_BYTES, autoClose: false })) {
    signal?.throwIfAborted()
    found.add(bytes)
  }
  const now = found.end()
  return now.length === macs.length && now.length % MAC_BYTES === 0 && timingSafeEqual(now, macs)
}

/** The clear bytes of a whole sealed buffer; for small files and tests. */
export function openSeal(sealed: Buffer, seal: Seal): Buffer {
  const decipher = createDecipheriv('aes-128-cbc', seal.key, seal.iv)
  return Buffer.concat([decipher.update(sealed), decipher.final()])
}
