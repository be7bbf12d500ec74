import { createHash, createHmac, type KeyObject, randomBytes } from 'node:crypto'
import { equalsInConstantTime } from '../../crypto/constant-time.ts'
import { deriveKey, type MasterKey } from '../../crypto/master-key.ts'
import { PlaybackRefusal } from '../refusal.ts'

// The proof that every playback request carries, a MAC under the key that browser and server have agreed on (server-key.ts):
// playback-protocol.md, section 3. Nothing in it is parsed but fixed fields, and there is no field for an algorithm.

/** `beat` is a heartbeat, `file` a poster or captions, `damage` a report of a segment that cannot be read. */
export type Operation = 'redeem' | 'page' | 'playlist' | 'key' | 'file' | 'beat' | 'damage' | 'leave'

/** The header's fields, well formed but not verified. */
export type Proof = { pageId: string; seq: number; nonce: string; tag: string }

/**
 * What was signed: typed values after routing, so that a proxy that rewrites addresses does not change it. `session` is empty for a
 * redeem; `argument` is the last part of the path: a key window, or the name of a playlist or file.
 */
export type SignedValues = { operation: Operation; session: string; argument: string; body: Buffer }

const PROOF_PATTERN = /^2\.([\w-]{22})\.([1-9]\d{0,9})\.([\w-]{24})\.([\w-]{43})$/

/** @throws PlaybackRefusal `not-allowed` when the header is missing, repeated (Node joins the values) or malformed */
export function readProof(header: string | undefined): Proof {
  const [, pageId, seq, nonce, tag] = PROOF_PATTERN.exec(header ?? '') ?? []
  if (!pageId || !seq || !nonce || !tag) throw new PlaybackRefusal('not-allowed')
  return { pageId, seq: Number(seq), nonce, tag }
}

/** Whether the holder of the proof key signed this request. */
export function isSignedWith(proofKey: KeyObject, proof: Proof, signed: SignedValues): boolean {
  const { operation, session, argument, body } = signed
  const bodyHash = body.length > 0 ? createHash('sha256').update(body).digest('base64url') : '-'
  const lines = [
    'reelgate-proof-2',
    operation,
    session || '-',
    argument || '-',
    proof.pageId,
    String(proof.seq),
    proof.nonce,
    bodyHash,
  ]
  return equalsInConstantTime(createHmac('sha256', proofKey).update(lines.join('\n')).digest('base64url'), proof.tag)
}

/** SHA-256 of a public key, by which rows name it. */
export function publicKeyThumbprint(point: Buffer): Buffer {
  return createHash('sha256').update(point).digest()
}

const SLOT_S = 30
const VALID_SLOTS = 4

/** One nonce per 30 s for all sessions, so that proofs cannot be signed far in advance. */
export type Nonces = {
  current(): string
  isFresh(nonce: string): boolean
  /** What their key contains. */
  epoch(): string
  /** From now on all nonces of another epoch are stale. */
  useEpoch(epoch: string): void
}

/**
 * The key contains an epoch: that of all servers, or as long as there is one, a random id of its start. Then a restart makes all older
 * proofs stale, so used proofs need not be stored.
 */
export function createNonces(master: MasterKey, nowS: () => number): Nonces {
  let epoch = randomBytes(16).toString('hex')
  let ofKeys = makersOfRing()
  let madeWith = master.bytes

  /** One for each master key: servers learn of a rotation one after the other. */
  function makersOfRing(): [NonceOf, ...NonceOf[]] {
    return [createNonceOf(master.bytes, epoch), ...master.older.map(({ bytes }) => createNonceOf(bytes, epoch))]
  }

  function makers(): [NonceOf, ...NonceOf[]] {
    if (madeWith !== master.bytes) {
      ofKeys = makersOfRing()
      madeWith = master.bytes
    }
    return ofKeys
  }

  const currentSlot = () => Math.floor(nowS() / SLOT_S)
  return {
    current: () => makers()[0](currentSlot()),
    isFresh(nonce) {
      const slot = Buffer.from(nonce, 'base64url').readUInt32BE(0)
      const age = currentSlot() - slot
      return age >= 0 && age < VALID_SLOTS && makers().some((nonceOf) => equalsInConstantTime(nonceOf(slot), nonce))
    },
    epoch: () => epoch,
    useEpoch(next) {
      if (next === epoch) return
      epoch = next
      ofKeys = makersOfRing()
    },
  }
}

/** @returns the nonce of a slot */
type NonceOf = (slot: number) => string

function createNonceOf(masterBytes: Buffer, epoch: string): NonceOf {
  const key = deriveKey(masterBytes, `reelgate nonce 1 ${epoch}`, 32)
  const known = new Map<number, string>() // requests use one or two of the latest

  function makeNonce(slot: number): string {
    const slotBytes = Buffer.alloc(4)
    slotBytes.writeUInt32BE(slot)
    const mac = createHmac('sha256', key).update(slotBytes).digest().subarray(0, 14)
    return Buffer.concat([slotBytes, mac]).toString('base64url')
  }

  return (slot) => {
    const nonce = known.get(slot) ?? makeNonce(slot)
    if (known.size > VALID_SLOTS) known.clear()
    known.set(slot, nonce)
    return nonce
  }
}

/** The sequence numbers that a page has used: the highest, and a bit for each of the 32 below it. */
export type ReplayWindow = { highest: number; seen: number }

export function newReplayWindow(): ReplayWindow {
  return { highest: 0, seen: 0 }
}

const REPLAY_WINDOW_SIZE = 32

/** Marks a number as used. False when it was used before, or is too low to tell. Call only after the tag was verified. */
export function acceptSeq(window: ReplayWindow, seq: number): boolean {
  const ahead = seq - window.highest
  if (ahead > 0) {
    const shifted = ahead >= REPLAY_WINDOW_SIZE ? 0 : window.seen << ahead
    // The old highest becomes one of those below.
    window.seen = ahead <= REPLAY_WINDOW_SIZE && window.highest > 0 ? shifted | (1 << (ahead - 1)) : shifted
    window.highest = seq
    return true
  }
  const bit = 1 << (-ahead - 1)
  if (ahead === 0 || -ahead > REPLAY_WINDOW_SIZE || window.seen & bit) return false
  window.seen |= bit
  return true
}
