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

type Hash = { update(bytes: Buffer): unknown; digest(): Buffer }

/** A file after some of its bytes: `iv` is its last sealed block, `rest` the clear bytes that do not fill a block. */
type Sealable = { sizeBytes: number; sha256: Hash; macs: MacBlocks; iv: Buffer; rest: Buffer }

function newFile(seal: Seal, sha256: Hash): Sealable {
  return { sizeBytes: 0, sha256, macs: new MacBlocks(seal), iv: seal.iv, rest: Buffer.alloc(0) }
}

function continueSealing(seal: Seal, file: Sealable): Sealing {
  const cipher = createCipheriv('aes-128-cbc', seal.key, file.iv)
  cipher.update(file.rest)
  function authenticate(sealed: Buffer): Buffer {
    file.macs.add(sealed)
    if (sealed.length > 0) file.iv = sealed.subarray(-CIPHER_BLOCK_BYTES)
    return sealed
  }
  return {
    add(clear) {
      file.sha256.update(clear)
      file.sizeBytes += clear.length
      const restBytes = file.sizeBytes % CIPHER_BLOCK_BYTES
      file.rest = clear.length < restBytes ? Buffer.concat([file.rest, clear]) : lastBytes(clear, restBytes)
      return authenticate(cipher.update(clear))
    },
    sizeBytes: () => file.sizeBytes,
    end() {
      const last = authenticate(cipher.final())
      return { last, sizeBytes: file.sizeBytes, sha256: file.sha256.digest(), macs: file.macs.end() }
    },
  }
}

/** Sealing that another process can continue, after any of its bytes. */
export type ResumableSealing = Sealing & {
  /** How many sealed bytes `add` has returned so far. */
  sealedBytes(): number
  /** The state now, for `resumeSealing`. It can only be opened with the key of the file, since it has clear bytes in it. */
  save(): Buffer
}

/**
 * @param saved what `save` returned after so many clear bytes; undefined for a new file
 * @throws when that is not of this file, or was saved by a version with another hash
 */
export async function resumeSealing(seal: Seal, saved?: { sizeBytes: number; state: Buffer }): Promise<ResumableSealing> {
  const [sha256, inner] = await Promise.all([createSavableHash(), createSavableHash()])
  const mac = createSavableMac(macKeyOf(seal), inner)
  const file = { ...newFile(seal, sha256), macs: new MacBlocks(seal, mac.begin) }
  if (saved) {
    const { sizeBytes } = saved
    const sealedBytes = sealedBytesOf({ sizeBytes })
    const blocks = Math.floor(sealedBytes / MAC_BLOCK_BYTES)
    const take = cutFrom(openBlob(seal.key, stateName(sizeBytes), saved.state))
    file.sizeBytes = sizeBytes
    file.iv = take(CIPHER_BLOCK_BYTES)
    file.rest = take(sizeBytes - sealedBytes)
    const macs = take(blocks * MAC_BYTES)
    sha256.load(take(sha256.save().length))
    const from = { macs, blockBytes: sealedBytes % MAC_BLOCK_BYTES, mac: mac.begin(blocks, take()) }
    file.macs = new MacBlocks(seal, mac.begin, from)
  }
  return {
    ...continueSealing(seal, file),
    sealedBytes: () => sealedBytesOf(file),
    save() {
      const state = [file.iv, file.rest, file.macs.done(), sha256.save(), mac.save()]
      return sealBlob(seal.key, stateName(file.sizeBytes), Buffer.concat(state))
    },
  }
}

/** Returns the bytes of a buffer from its start on, each time those behind the last ones; without a count all that are left. */
function cutFrom(bytes: Buffer): (count?: number) => Buffer {
  let at = 0
  return (count = bytes.length - at) => {
    at += count
    return bytes.subarray(at - count, at)
  }
}

function sealedBytesOf({ sizeBytes }: Pick<Sealable, 'sizeBytes'>): number {
  return sizeBytes - (sizeBytes % CIPHER_BLOCK_BYTES)
}

function lastBytes(bytes: Buffer, count: number): Buffer {
  return Buffer.from(bytes.subarray(bytes.length - count))
}

/** A SHA-256 that can be saved, as Node's cannot. */
type SavableHash = Hash & { restart(): void; save(): Uint8Array; load(state: Uint8Array): void }

async function createSavableHash(): Promise<SavableHash> {
  const { createSHA256 } = await import('hash-wasm')
  const hash = await createSHA256()
  return {
    update: (bytes) => hash.update(bytes),
    digest: () => Buffer.from(hash.digest('binary')),
    restart: () => void hash.init(),
    save: () => hash.save(),
    load: (state) => void hash.load(state),
  }
}

function stateName(sizeBytes: number): string {
  return `sealing 2 ${sizeBytes}`
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

/** The MAC of one block, for which the number of the block has been added. */
type BlockMac = { update(bytes: Buffer): unknown; digest(): Buffer }

/** Where the blocks of a file continue: after the MACs of the whole ones, with so many bytes in the one that `mac` is of. */
type BlocksSoFar = { macs: Buffer; blockBytes: number; mac: BlockMac }

function macKeyOf({ key }: Seal): Buffer {
  return deriveKey(key, 'reelgate source-mac 1', 32)
}

/** Cuts a byte stream into blocks of a MiB and signs each with its number. */
class MacBlocks {
  readonly #newMac: (number: number) => BlockMac
  readonly #done: Buffer[] = []
  #count: number
  #mac: BlockMac
  #room: number

  constructor(seal: Seal, newMac?: (number: number) => BlockMac, from?: BlocksSoFar) {
    const key = macKeyOf(seal)
    this.#newMac = newMac ?? ((number) => createHmac('sha256', key).update(String(number)))
    if (from) this.#done.push(from.macs)
    this.#count = (from?.macs.length ?? 0) / MAC_BYTES
    this.#room = MAC_BLOCK_BYTES - (from?.blockBytes ?? 0)
    this.#mac = from?.mac ?? this.#newMac(this.#count)
  }

  add(bytes: Buffer): void {
    for (let rest = bytes; rest.length > 0; ) {
      const part = rest.subarray(0, this.#room)
      this.#mac.update(part)
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
    this.#done.push(this.#mac.digest())
    this.#count++
    this.#mac = this.#newMac(this.#count)
    this.#room = MAC_BLOCK_BYTES
  }
}

/**
 * The MAC of one block after another, which can be saved within a block. Node's HMAC is several times faster, and cannot: the bytes of a
 * block wait for its end, and go through the other hash only where the MAC is saved.
 */
function createSavableMac(key: Buffer, inner: SavableHash) {
  let number = 0
  let waiting: Buffer[] = []
  let isInner = false
  const padded = (byte: number) => Buffer.concat([key, Buffer.alloc(64 - key.length)]).map((each) => each ^ byte)

  function addWaiting(): void {
    if (!isInner) {
      inner.restart()
      inner.update(Buffer.from(padded(0x36)))
      inner.update(Buffer.from(String(number)))
    }
    isInner = true
    for (const bytes of waiting) inner.update(bytes)
    waiting = []
  }

  function digest(): Buffer {
    if (!isInner) {
      const hmac = createHmac('sha256', key).update(String(number))
      for (const bytes of waiting) hmac.update(bytes)
      return hmac.digest()
    }
    addWaiting()
    return createHash('sha256').update(padded(0x5c)).update(inner.digest()).digest()
  }

  function begin(ofNumber: number, state?: Buffer): BlockMac {
    number = ofNumber
    waiting = []
    isInner = state !== undefined
    if (state) inner.load(state)
    return { update: (bytes) => waiting.push(bytes), digest }
  }

  return {
    begin,
    save() {
      addWaiting()
      return inner.save()
    },
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
  const verify = await openVerifier(macKeyOf({ key, iv }), macs)
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
