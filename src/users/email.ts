import { requireRecentSignIn } from '../accounts/recent-sign-in.ts'
import { recordAuditEvent } from '../audit/audit-log.ts'
import type { Write } from '../db/write.ts'
import { Failure } from '../errors.ts'
import type { SignedIn } from './authenticate.ts'
import { notify } from './notice.ts'
import type { Browser } from './sign-in.ts'
import { assertEmail, EMAIL_CHANGED } from './user.ts'
import { findUser, updateUser } from './user-store.ts'

/**
 * Changes where the person who is signed in is notified. The former address is notified of that.
 * @param email null: nowhere
 * @throws Failure `invalid`, `sign-in-again`
 */
export async function setOwnEmail(
  { write, nowS }: { write: Write; nowS: () => number },
  person: SignedIn,
  email: string | null,
  browser: Browser,
): Promise<void> {
  const { consoleUserId, userName, ownAccountId } = person
  const atS = nowS()
  requireRecentSignIn(person, atS)
  assertEmail(email)
  await write(async (tx) => {
    const user = await findUser(tx, consoleUserId)
    if (!user) throw new Failure('unauthenticated', 'You are not signed in.')
    if (user.email === email) return
    await updateUser(tx, consoleUserId, { email })
    await notify(tx, user, 'email-changed', { ...browser, consoleUserId, userName, atS })
    const event = { atS, accountId: ownAccountId, by: { consoleUserId }, kind: 'user:changed' } as const
    await recordAuditEvent(tx, { ...event, subjects: [consoleUserId], details: EMAIL_CHANGED })
  })
}
