import { createCipheriv, createDecipheriv } from 'node:crypto'
import { type MasterKey, signingKeys } from '../crypto/master-key.ts'
import { Failure } from '../errors.ts'

// Where the next page of a list starts: the position of the last row, which stays correct while videos are added and deleted. It is
// encrypted as one block, because a bare position would reveal how many videos the whole installation has had.

export type CursorDeps = {
  masterKey: MasterKey
  /** The playback clock. */
  nowS: () => number
}

const CIPHER = 'aes-128-ecb'
const BLOCK_BYTES = 16

export const LIST_CURSOR_KEY = { info: 'reelgate list-cursor 1', lengthBytes: BLOCK_BYTES } as const

/** 22 characters of base64url. */
export function encodeCursor(deps: CursorDeps, accountId: string, position: number): string {
  const block = Buffer.alloc(BLOCK_BYTES)
  block.writeBigUInt64BE(BigInt(position))
  accountTag(accountId).copy(block, BLOCK_BYTES / 2)
  const cipher = createCipheriv(CIPHER, cursorKeys(deps)[0], null).setAutoPadding(false)
  return Buffer.concat([cipher.update(block), cipher.final()]).toString('base64url')
}

/** @throws Failure `invalid` for a cursor that this installation has not issued to this account */
export function decodeCursor(deps: CursorDeps, accountId: string, cursor: string): number {
  const sealed = Buffer.from(cursor, 'base64url')
  if (sealed.length !== BLOCK_BYTES) throw invalidCursor()
  for (const key of cursorKeys(deps)) {
    const decipher = createDecipheriv(CIPHER, key, null).setAutoPadding(false)
    const block = Buffer.concat([decipher.update(sealed), decipher.final()])
    if (block.subarray(BLOCK_BYTES / 2).equals(accountTag(accountId))) return Number(block.readBigUInt64BE())
  }
  throw invalidCursor()
}

function cursorKeys({ masterKey, nowS }: CursorDeps): [Buffer, ...Buffer[]] {
  return signingKeys(masterKey, LIST_CURSOR_KEY.info, LIST_CURSOR_KEY.lengthBytes, nowS())
}

/** The first half of an account's id, which is 32 hexadecimal digits. */
function accountTag(accountId: string): Buffer {
  return Buffer.from(accountId, 'hex').subarray(0, BLOCK_BYTES / 2)
}

function invalidCursor(): Failure {
  return new Failure(
    'invalid',
    'after must be a cursor of this list. Follow the Link header of the previous page, or start without it.',
  )
}
