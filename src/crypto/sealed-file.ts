import { createDecipheriv, createHash, createHmac, randomBytes, subtle } from 'node:crypto'
import { Transform, type TransformCallback } from 'node:stream'
import type { IHasher } from 'hash-wasm'
import { equalsInConstantTime } from './constant-time.ts'
import { deriveKey } from './master-key.ts'
import { openBlob, sealBlob } from './sealed-blob.ts'
import { sealOnThread } from './sealing-thread.ts'
import type { SealedBlock } from './sealing-worker.ts'

/**
 * A sealed file that ffmpeg can read with seeks: AES-128-CBC with a key of its own, PKCS#7 at the end.
 * CBC does not detect changed bytes, so an HMAC-SHA-256 for each MiB of ciphertext is stored, too.
 */
export type Seal = { key: Buffer; iv: Buffer }

const BLOCK_BYTES = 2 ** 20
const MAC_BYTES = 32
const CIPHER_BLOCK_BYTES = 16

export function newSeal(): Seal {
  return { key: randomBytes(16), iv: randomBytes(16) }
}

/**
 * Size and checksums of a file after sealing. `sha256` is that of the clear bytes, MiB by MiB, so that its state is small and known at every
 * MiB: of the first MiB; then, with each further one, of what is so far and of the SHA-256 of that one.
 */
export type Sealed = { sizeBytes: number; sha256: Buffer; macs: Buffer }

/** Seals a file in constant memory, a MiB at a time, on another thread; counts, hashes and authenticates on the way. */
export type Sealing = {
  /** Yields what is sealed now, often nothing: clear bytes wait until they fill a MiB, or for `flush`. To be used before the next call. */
  add(clear: Buffer): AsyncGenerator<Buffer>
  /** Seals what waits, but for the last bytes when they do not fill a cipher block. To be used before the next call. */
  flush(): Promise<Buffer>
  /** Of all clear bytes added so far. */
  sizeBytes(): number
  /** How many sealed bytes were returned so far. */
  sealedBytes(): number
  /** What continues after the bytes that were returned. After `flush` those are all that were added. */
  save(): SavedSealing
  /** Ends the file. `last` are its last sealed bytes. */
  end(): Promise<Sealed & { last: Buffer }>
}

/**
 * Sealing that another process can continue, after so many clear bytes of the file. It can only be opened with the key of the file, since it
 * has clear bytes in it.
 */
type SavedSealing = { sizeBytes: number; state: Buffer }

/**
 * The hashes of a block that was sealed up to somewhere within it. Node's hashes are several times faster, and cannot be saved: those of whole
 * blocks are Node's.
 */
type BegunBlock = { clear: IHasher; sealed: IHasher }

/**
 * @param saved undefined for a new file
 * @throws when that is not of this file, or was saved by a version with another hash
 */
export async function openSealing(seal: Seal, saved?: SavedSealing): Promise<Sealing> {
  const macKey = macKeyOf(seal)
  const pads = padsOf(macKey)
  const memory = new SharedArrayBuffer(BLOCK_BYTES + CIPHER_BLOCK_BYTES) // of a block and its padding
  const waiting = Buffer.from(memory)
  let waitingBytes = 0
  let sizeBytes = 0
  let iv = seal.iv
  const macs: Buffer[] = []
  let sha256: Buffer | undefined
  let begun: BegunBlock | undefined
  if (saved) await load(saved)

  async function load({ sizeBytes: savedBytes, state }: SavedSealing): Promise<void> {
    const take = cutFrom(openBlob(seal.key, stateName(savedBytes), state))
    sizeBytes = savedBytes
    waitingBytes = savedBytes % CIPHER_BLOCK_BYTES
    iv = take(CIPHER_BLOCK_BYTES)
    take(waitingBytes).copy(waiting)
    for (let whole = Math.floor(savedBytes / BLOCK_BYTES); macs.length < whole; ) macs.push(take(MAC_BYTES))
    if (macs.length > 0) sha256 = take(SHA256_BYTES)
    const states = take()
    if (states.length === 0) return
    begun = { clear: await createSavableHash(), sealed: await createSavableHash() }
    begun.clear.load(states.subarray(0, states.length / 2))
    begun.sealed.load(states.subarray(states.length / 2))
  }

  /** Seals where the bytes wait. */
  async function sealWaiting(clearBytes: number, isLast = false): Promise<SealedBlock & { sealed: Buffer }> {
    const clear = waiting.subarray(0, clearBytes)
    begun?.clear.update(clear)
    const done = await sealOnThread({ key: seal.key, macKey, iv, number: macs.length, memory, clearBytes, isLast })
    const sealed = waiting.subarray(0, done.sealedBytes)
    begun?.sealed.update(sealed)
    iv = Buffer.from(sealed.subarray(-CIPHER_BLOCK_BYTES))
    waitingBytes -= clearBytes
    return { ...done, sealed }
  }

  async function endBlock(isLast: boolean): Promise<Buffer> {
    const hasClearBytes = waitingBytes > 0 || begun !== undefined || sizeBytes === 0
    const { sealed, ...hashes } = await sealWaiting(waitingBytes, isLast)
    if (hasClearBytes) sha256 = chainHashes(sha256, Buffer.from(begun?.clear.digest('binary') ?? hashes.sha256))
    macs.push(begun ? pads.outer(begun.sealed.digest('binary')) : Buffer.from(hashes.mac))
    begun = undefined
    return sealed
  }

  return {
    async *add(clear) {
      for (let rest = clear; rest.length > 0; ) {
        const piece = rest.subarray(0, BLOCK_BYTES - (sizeBytes % BLOCK_BYTES))
        rest = rest.subarray(piece.length)
        piece.copy(waiting, waitingBytes)
        waitingBytes += piece.length
        sizeBytes += piece.length
        if (sizeBytes % BLOCK_BYTES === 0) yield await endBlock(false)
      }
    },
    async flush() {
      const rest = Buffer.from(waiting.subarray(waitingBytes - (waitingBytes % CIPHER_BLOCK_BYTES), waitingBytes))
      const whole = waitingBytes - rest.length
      if (whole === 0) return Buffer.alloc(0)
      begun ??= { clear: await createSavableHash(), sealed: (await createSavableHash()).update(pads.inner(macs.length)) }
      const sealed = Buffer.from((await sealWaiting(whole)).sealed)
      rest.copy(waiting)
      return sealed
    },
    sizeBytes: () => sizeBytes,
    sealedBytes: () => sizeBytes - waitingBytes,
    save() {
      const rest = waiting.subarray(0, waitingBytes < CIPHER_BLOCK_BYTES ? waitingBytes : 0)
      const savedBytes = sizeBytes - waitingBytes + rest.length
      const states = begun ? [begun.clear.save(), begun.sealed.save()] : []
      const state = Buffer.concat([iv, rest, ...macs, sha256 ?? Buffer.alloc(0), ...states])
      return { sizeBytes: savedBytes, state: sealBlob(seal.key, stateName(savedBytes), state) }
    },
    async end() {
      const last = await endBlock(true)
      return { last, sizeBytes, sha256: sha256 ?? Buffer.alloc(0), macs: Buffer.concat(macs) }
    },
  }
}

async function createSavableHash(): Promise<IHasher> {
  const { createSHA256 } = await import('hash-wasm')
  return (await createSHA256()).init()
}

const SHA256_BYTES = 32

function chainHashes(before: Buffer | undefined, next: Buffer): Buffer {
  return before ? createHash('sha256').update(before).update(next).digest() : next
}

/** `Sealed.sha256` of bytes that are not sealed, piece by piece. */
export function createFileHash(): { update(bytes: Buffer): void; digest(): Buffer } {
  const blocks = new Blocks(() => createHash('sha256'))
  return {
    update: (bytes) => blocks.add(bytes),
    digest() {
      const [first = createHash('sha256').digest(), ...others] = blocks.end()
      return others.reduce(chainHashes, first)
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

function stateName(sizeBytes: number): string {
  return `sealing 3 ${sizeBytes}`
}

/** Clear bytes in, sealed bytes out. */
export class SealingStream extends Transform {
  readonly #sealing: Promise<Sealing>
  #sealed: Sealed | undefined

  constructor(seal: Seal) {
    super({ highWaterMark: 2 ** 18 })
    this.#sealing = openSealing(seal)
  }

  /** Only after the stream has ended. */
  get sealed(): Sealed {
    if (!this.#sealed) throw new Error('the sealed stream has not ended')
    return this.#sealed
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    const add = async () => {
      for await (const sealed of (await this.#sealing).add(chunk)) this.push(Buffer.from(sealed))
    }
    add().then(() => done(), done)
  }

  override _flush(done: TransformCallback): void {
    const end = async () => {
      const { last, ...sealed } = await (await this.#sealing).end()
      this.#sealed = sealed
      return last
    }
    end().then((last) => done(null, last), done)
  }
}

function macKeyOf({ key }: Seal): Buffer {
  return deriveKey(key, 'reelgate source-mac 1', 32)
}

/** HMAC-SHA-256 of a block and its number, as the two SHA-256 that it is of (RFC 2104): the inner one can be saved. */
function padsOf(key: Buffer) {
  const padded = (byte: number) => Buffer.concat([key, Buffer.alloc(64 - key.length)]).map((each) => each ^ byte)
  const [inner, outer] = [padded(0x36), padded(0x5c)]
  return {
    inner: (number: number) => Buffer.concat([inner, Buffer.from(String(number))]),
    outer: (innerHash: Uint8Array) => createHash('sha256').update(outer).update(innerHash).digest(),
  }
}

type Hash = { update(bytes: Buffer): unknown; digest(): Buffer }

/** Cuts a byte stream into blocks of a MiB and hashes each. */
class Blocks {
  readonly #newHash: (number: number) => Hash
  readonly #done: Buffer[] = []
  #hash: Hash | undefined
  #room = BLOCK_BYTES

  constructor(newHash: (number: number) => Hash) {
    this.#newHash = newHash
  }

  add(bytes: Buffer): void {
    for (let rest = bytes; rest.length > 0; ) {
      const part = rest.subarray(0, this.#room)
      this.#hash ??= this.#newHash(this.#done.length)
      this.#hash.update(part)
      this.#room -= part.length
      rest = rest.subarray(part.length)
      if (this.#room === 0) this.end()
    }
  }

  /** With the block that is not full. */
  end(): readonly Buffer[] {
    if (this.#hash) this.#done.push(this.#hash.digest())
    this.#hash = undefined
    this.#room = BLOCK_BYTES
    return this.#done
  }
}

/** Compares the bytes of a sealed file, which it is given in their order, with those that were sealed. */
export function checkSeal(seal: Seal, macs: Buffer): { add(bytes: Buffer): void; isIntact(): boolean } {
  const key = macKeyOf(seal)
  const found = new Blocks((number) => createHmac('sha256', key).update(String(number)))
  return {
    add: (bytes) => found.add(bytes),
    isIntact() {
      const now = Buffer.concat(found.end())
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
  const firstBlock = Math.floor(range.first / BLOCK_BYTES)
  // CBC deciphers a block with the last bytes of the block before it, so these are verified, too.
  let before = firstBlock === 0 ? iv : (await readBlock(file, firstBlock - 1, verify)).subarray(-CIPHER_BLOCK_BYTES)
  for (let number = firstBlock; number * BLOCK_BYTES <= range.last; number++) {
    const sealed = await readBlock(file, number, verify)
    const clear = createDecipheriv('aes-128-cbc', key, before).setAutoPadding(false).update(sealed)
    const startsAt = number * BLOCK_BYTES
    yield clear.subarray(Math.max(0, range.first - startsAt), range.last + 1 - startsAt)
    before = sealed.subarray(-CIPHER_BLOCK_BYTES)
  }
}

/** Reads the sealed bytes of a file. @returns a MiB of them by its number; undefined: it is not what was sealed */
export async function openSealedBlocks(file: SealedBytes, seal: Seal, macs: Buffer) {
  const verify = await openVerifier(macKeyOf(seal), macs)
  return (number: number): Promise<Buffer | undefined> => findBlock(file, number, verify)
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
  const sealed = await findBlock(file, number, verify)
  if (!sealed) throw new Error('a sealed file was changed on the disk')
  return sealed
}

async function findBlock(file: SealedBytes, number: number, verify: Verify): Promise<Buffer | undefined> {
  const buffer = Buffer.alloc(BLOCK_BYTES)
  const bytesRead = await file.read(buffer, number * BLOCK_BYTES)
  const sealed = buffer.subarray(0, bytesRead)
  return (await verify(number, sealed)) ? sealed : undefined
}
