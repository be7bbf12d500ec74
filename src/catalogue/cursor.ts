import { createCipheriv, createDecipheriv } from 'node:crypto'
import { deriveKey, type MasterKey } from '../crypto/master-key.ts'
import { Failure } from '../errors.ts'

// Where a list goes on: the position of its last row, which stays right whatever comes and goes. One enciphered block, since a bare
// position would tell an owner how many videos the whole installation has had.

export type CursorDeps = { masterKey: MasterKey }

const BLOCK = 'aes-128-ecb'
const BYTES = 16

/** 22 characters of base64url. */
export function encodeCursor(deps: CursorDeps, accountId: string, position: number): string {
  const block = Buffer.alloc(BYTES)
  block.writeBigUInt64BE(BigInt(position))
  halfOf(accountId).copy(block, BYTES / 2)
  const cipher = createCipheriv(BLOCK, keyOf(deps), null).setAutoPadding(false)
  return Buffer.concat([cipher.update(block), cipher.final()]).toString('base64url')
}

/** @throws Failure `invalid` for what this installation has not given to this account */
export function decodeCursor(deps: CursorDeps, accountId: string, cursor: string): number {
  const sealed = Buffer.from(cursor, 'base64url')
  if (sealed.length !== BYTES) throw notGiven()
  const decipher = createDecipheriv(BLOCK, keyOf(deps), null).setAutoPadding(false)
  const block = Buffer.concat([decipher.update(sealed), decipher.final()])
  if (!block.subarray(BYTES / 2).equals(halfOf(accountId))) throw notGiven()
  return Number(block.readBigUInt64BE())
}

function keyOf({ masterKey }: CursorDeps): Buffer {
  return deriveKey(masterKey.bytes, 'reelgate list-cursor 1', BYTES)
}

/** Accounts' ids are 32 hexadecimal digits. */
function halfOf(accountId: string): Buffer {
  return Buffer.from(accountId, 'hex').subarray(0, BYTES / 2)
}

function notGiven(): Failure {
  return new Failure(
    'invalid',
    'after is no cursor of this list. Follow the Link header of the page before, or begin without it.',
  )
}
