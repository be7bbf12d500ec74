import { insertNotice } from '../alerts/mail-store.ts'
import { oneLine } from '../alerts/mail-text.ts'
import { newId } from '../crypto/secret.ts'
import type { Db } from '../db/database.ts'
import type { ConsoleUserRow } from '../db/tables.ts'

/** What a person is notified of: what happened, and what to do if it was not them. */
const NOTICES = {
  'passkey-added': {
    subject: 'A passkey was added',
    more: 'It signs you in to the console from now on.',
    remedy:
      'If this was not you: sign in, remove the newest passkey under System, sign out everywhere else, and set a new password.',
  },
  'password-set': {
    subject: 'A new password was set',
    more: 'All your other browsers were signed out.',
    remedy:
      'If this was not you: ask another owner or the operator of the server for a sign-in link, set a new password with it, and remove the passkeys.',
  },
  'signed-out': {
    subject: 'All other browsers were signed out',
    more: 'Only the browser that asked for it is still signed in.',
    remedy:
      'If this was not you: sign in, sign out everywhere else under System, remove passkeys that are not yours, and set a new password.',
  },
  'access-ended': {
    subject: 'Your access was ended',
    more: 'You are signed out everywhere, and cannot sign in again.',
    remedy: 'If this is a mistake, ask an owner of the account or the operator of the server.',
  },
  'email-changed': {
    subject: 'Your e-mail address was changed',
    more: 'No more notices are sent to this one.',
    remedy:
      'If this was not you: sign in, correct the address, remove passkeys that are not yours, and set a new password; else ask another owner or the operator of the server.',
  },
} as const satisfies Record<string, { subject: string; more: string; remedy: string }>

/** Who did it, which of a thief is the person whose sign-in it is, from where and when. */
export type Doer = { consoleUserId: string; userName: string; address: string; userAgent: string; atS: number }

const MAX_USER_AGENT_LENGTH = 150

/**
 * Notifies a person by e-mail, in the transaction of what happened. Without an address, nothing is done; without a mail server, nothing is sent.
 * @param user as it was before
 */
export async function notify(tx: Db, user: Pick<ConsoleUserRow, 'id' | 'name' | 'email'>, cause: keyof typeof NOTICES, by: Doer) {
  if (user.email === null) return
  const { subject, more, remedy } = NOTICES[cause]
  const facts = [
    `Person: ${oneLine(user.name)}`,
    ...(by.consoleUserId === user.id ? [] : [`By: ${oneLine(by.userName)}`]),
    `When: ${new Date(by.atS * 1000).toISOString().slice(0, 16).replace('T', ' ')} UTC`,
    `Address: ${by.address}`,
    `Browser: ${plainUserAgent(by.userAgent)}`,
  ]
  const text = [more, facts.join('\n'), remedy].join('\n\n')
  await insertNotice(tx, { id: newId(), cause, recipient: user.email, subject, text }, by.atS)
}

/** A thief chooses it: without what mail programs would show as a link. */
function plainUserAgent(userAgent: string): string {
  return userAgent.replaceAll(/[^\w .,;()/+-]|\.(?=[a-z])/gi, ' ').slice(0, MAX_USER_AGENT_LENGTH) || 'unknown'
}
