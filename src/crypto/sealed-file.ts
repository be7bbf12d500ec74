import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes, subtle } from 'node:crypto'
import { Transform, type TransformCallback } from 'node:stream'
import { equalsInConstantTime } from './constant-time.ts'
import { deriveKey } from './master-key.ts'
import { openBlob, sealBlob } from './sealed-blob.ts'

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
  /** Ends the file. `last` are its last sealed bytes. */
  end(): Sealed & { last: Buffer }
}

/** A file after some of its bytes: `iv` is its last sealed block. */
type Sealable = { sizeBytes: number; sha256: { update(bytes: Buffer): unknown; digest(): Buffer }; macs: MacBlocks; iv: Buffer }

function newFile(seal: Seal, sha256: Sealable['sha256']): Sealable {
  return { sizeBytes: 0, sha256, macs: new MacBlocks(seal), iv: seal.iv }
}

function continueSealing(seal: Seal, file: Sealable): Sealing {
  const cipher = createCipheriv('aes-128-cbc', seal.key, file.iv)
  function authenticate(sealed: Buffer): Buffer {
    file.macs.add(sealed)
    if (sealed.length > 0) file.iv = sealed.subarray(-CIPHER_BLOCK_BYTES)
    return sealed
  }
  return {
    add(clear) {
      file.sha256.update(clear)
      file.sizeBytes += clear.length
      return authenticate(cipher.update(clear))
    },
    sizeBytes: () => file.sizeBytes,
    end() {
      const last = authenticate(cipher.final())
      return { last, sizeBytes: file.sizeBytes, sha256: file.sha256.digest(), macs: file.macs.end() }
    },
  }
}

/** Sealing that another process can continue. */
export type ResumableSealing = Sealing & {
  /**
   * The state after a whole number of `RESUMABLE_BYTES`, for `resumeSealing`. It can only be opened with the key of the file, since a
   * hash may have clear bytes in it.
   */
  save(): Buffer
}

/** At multiples of these neither the cipher nor a checksum has a part of a block. */
export const RESUMABLE_BYTES = MAC_BLOCK_BYTES

/**
 * @param saved what `save` returned after so many clear bytes; undefined for a new file
 * @throws when that is not of this file, or was saved by a version with another hash
 */
export async function resumeSealing(seal: Seal, saved?: { sizeBytes: number; state: Buffer }): Promise<ResumableSealing> {
  const { createSHA256 } = await import('hash-wasm') // Node's hashes cannot be saved
  const hash = await createSHA256()
  const file = newFile(seal, { update: hash.update, digest: () => Buffer.from(hash.digest('binary')) })
  if (saved) {
    const macBytes = (saved.sizeBytes / MAC_BLOCK_BYTES) * MAC_BYTES
    const state = openBlob(seal.key, stateName(saved.sizeBytes), saved.state)
    file.sizeBytes = saved.sizeBytes
    file.iv = state.subarray(0, CIPHER_BLOCK_BYTES)
    file.macs = new MacBlocks(seal, state.subarray(CIPHER_BLOCK_BYTES, CIPHER_BLOCK_BYTES + macBytes))
    hash.load(state.subarray(CIPHER_BLOCK_BYTES + macBytes))
  }
  return {
    ...continueSealing(seal, file),
    save: () => sealBlob(seal.key, stateName(file.sizeBytes), Buffer.concat([file.iv, file.macs.done(), hash.save()])),
  }
}

function stateName(sizeBytes: number): string {
  return `sealing ${sizeBytes}`
}

/** Clear bytes in, sealed bytes out. */
export class SealingStream extends Transform {
  readonly #sealing: Sealing
  #sealed: Sealed | undefined

  constructor(seal: Seal) {
    super({ highWaterMark: 2 ** 18 })
    this.#sealing = continueSealing(seal, newFile(seal, createHash('sha256')))
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
  #count: number
  #hmac
  #room = MAC_BLOCK_BYTES

  /** @param done those of the blocks before */
  constructor(seal: Seal, done: Buffer = Buffer.alloc(0)) {
    this.#key = deriveKey(seal.key, 'reelgate source-mac 1', 32)
    this.#done.push(done)
    this.#count = done.length / MAC_BYTES
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

  /** Of the whole blocks so far. */
  done(): Buffer {
    return Buffer.concat(this.#done)
  }

  end(): Buffer {
    if (this.#room < MAC_BLOCK_BYTES) this.#finishBlock()
    return this.done()
  }

  #finishBlock(): void {
    this.#done.push(this.#hmac.digest())
    this.#count++
    this.#hmac = this.#newBlock()
    this.#room = MAC_BLOCK_BYTES
  }

  #newBlock() {
    return createHmac('sha256', this.#key).update(String(this.#count))
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

/** Whether the bytes of a sealed file are, one by one, those that were sealed. */
export async function isSealIntact(sealed: AsyncIterable<Buffer>, seal: Seal, macs: Buffer, signal?: AbortSignal) {
  const check = checkSeal(seal, macs)
  for await (const bytes of sealed) {
    signal?.throwIfAborted()
    check.add(bytes)
  }
  return check.isIntact()
}

/** A stored file: fills `into` with its bytes from `at` on, and resolves with how many there were, fewer only at its end. */
type SealedBytes = { read(into: Buffer, at: number): Promise<number> }

/**
 * The clear bytes of a part of a sealed file, a MiB at a time: CBC can be opened at any block. Each MiB is verified before anything of
 * it is given.
 * @param range of clear bytes, both ends inclusive
 * @throws Error when the file is not the one that was sealed
 */
export async function* readSealed(
  file: SealedBytes,
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

async function readBlock(file: SealedBytes, number: number, verify: Verify): Promise<Buffer> {
  const buffer = Buffer.alloc(MAC_BLOCK_BYTES)
  const bytesRead = await file.read(buffer, number * MAC_BLOCK_BYTES)
  const sealed = buffer.subarray(0, bytesRead)
  if (!(await verify(number, sealed))) throw new Error('a sealed file was changed on the disk')
  return sealed
}
