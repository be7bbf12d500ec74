import { type Argon2Parameters, argon2, randomBytes } from 'node:crypto'
import { equalsInConstantTime } from '../crypto/constant-time.ts'
import { Failure } from '../errors.ts'

/**
 * The strongest of the equivalent settings that OWASP recommends for argon2id: 46 MiB and one pass, some 70 ms. A server hashes few
 * passwords, and one at a time, so its memory is bounded by one of them. @see docs/decisions/49-console-sign-in.md
 */
const COST = { memory: 46 * 1024, passes: 1, parallelism: 1, tagLength: 32 } as const
const SALT_BYTES = 16

/** Hashes that may wait for their turn: with more, a flood of sign-ins would keep everyone waiting. */
const MAX_WAITING = 30

const MIN_LENGTH = 10
const MAX_LENGTH = 200
const MIN_DIFFERENT = 5
/** A shorter name is in many good passwords by chance. */
const MIN_NAME_LENGTH = 4

export type Passwords = {
  /** @returns the PHC string of its argon2id hash */
  hash(password: string): Promise<string>
  /** Whether a password has this hash. Undefined: false, after the same work. */
  isRight(password: string, phc: string | undefined): Promise<boolean>
}

/** Hashes passwords outside of the event loop, one after the other: each takes one of the few threads that also read files. */
export function createPasswords(): Passwords {
  let waiting = 0
  let last: Promise<unknown> = Promise.resolve()

  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (waiting >= MAX_WAITING)
      throw new Failure('unavailable', 'Too many people are signing in. Try again in a moment.', { retryAfterS: 10 })
    waiting += 1
    const done = last.then(work).finally(() => {
      waiting -= 1
    })
    last = done.catch(() => undefined)
    return done
  }

  return {
    async hash(password) {
      const nonce = randomBytes(SALT_BYTES)
      return formatPhc({ nonce, tag: await inTurn(() => runArgon2(password, { ...COST, nonce })), ...COST })
    },
    async isRight(password, phc) {
      const { tag, ...parameters } = phc === undefined ? NO_PASSWORD : parsePhc(phc)
      const actual = await inTurn(() => runArgon2(password, { ...parameters, tagLength: tag.length }))
      return equalsInConstantTime(tag, actual) && phc !== undefined
    },
  }
}

/** What a person without a password is compared with. */
const NO_PASSWORD: Phc = { ...COST, nonce: Buffer.alloc(SALT_BYTES), tag: Buffer.alloc(COST.tagLength) }

function runArgon2(password: string, parameters: Omit<Argon2Parameters, 'message'>): Promise<Buffer> {
  return new Promise((resolve, reject) =>
    argon2('argon2id', { ...parameters, message: normalize(password) }, (error, tag) => (error ? reject(error) : resolve(tag))),
  )
}

/** Keyboards write the same letter in several ways. */
function normalize(password: string): string {
  return password.normalize('NFKC')
}

type Phc = { memory: number; passes: number; parallelism: number; nonce: Buffer; tag: Buffer }

/** @see https://github.com/P-H-C/phc-string-format */
function formatPhc({ memory, passes, parallelism, nonce, tag }: Phc): string {
  const base64 = (bytes: Buffer) => bytes.toString('base64').replaceAll('=', '')
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${base64(nonce)}$${base64(tag)}`
}

function parsePhc(text: string): Phc {
  const [, memory, passes, parallelism, nonce = '', tag = ''] =
    /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/.exec(text) ?? []
  if (memory === undefined) throw new Error('a password hash is not an argon2id PHC string')
  const [salt, expected] = [nonce, tag].map((part) => Buffer.from(part, 'base64'))
  return {
    ...{ memory: Number(memory), passes: Number(passes), parallelism: Number(parallelism) },
    ...{ nonce: salt ?? Buffer.alloc(0), tag: expected ?? Buffer.alloc(0) },
  }
}

/** @throws Failure `invalid` for one that is guessed first */
export function checkNewPassword(password: string, userName: string): void {
  const characters = [...password]
  if (characters.length < MIN_LENGTH || characters.length > MAX_LENGTH)
    throw new Failure('invalid', `A password has ${MIN_LENGTH} to ${MAX_LENGTH} characters. Several words are easy to remember.`)
  const hasName = userName.length >= MIN_NAME_LENGTH && password.toLowerCase().includes(userName.toLowerCase())
  if (hasName || new Set(characters).size < MIN_DIFFERENT)
    throw new Failure('invalid', 'This password is easy to guess. Use other words than your name, and more than a few letters.')
}
