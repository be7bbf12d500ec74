import { addAccount, hasNoAccounts } from '../accounts/account.ts'
import { phraseFromKey } from '../crypto/recovery-phrase.ts'
import { addDemo } from '../demo/demo.ts'
import { addFirstUser, LINK_LIFE_S } from '../users/sign-in-link.ts'
import type { Foundation } from './open-foundation.ts'

/** What a first start made and what exists nowhere else: the owner is shown it once. */
export type FirstStart = {
  account: { accountId: string; apiKey: string } | undefined
  /** Undefined when the environment holds the key. */
  recoveryPhrase: string[] | undefined
  /** The token of a link that signs the first person in to the console. Undefined when there is none, or the account is older. */
  consoleToken: string | undefined
}

/** Makes the first account, and the demo with it, where there is no account yet. Undefined: this is not a first start. */
export async function prepareFirstStart(
  { db, write, nowS, masterKey, masterKeyIsNew }: Pick<Foundation, 'db' | 'write' | 'nowS' | 'masterKey' | 'masterKeyIsNew'>,
  { hasKeyFile, hasDemo, hasConsole }: { hasKeyFile: boolean; hasDemo: boolean; hasConsole: boolean },
): Promise<FirstStart | undefined> {
  const isEmpty = await hasNoAccounts({ db })
  if (!isEmpty && !masterKeyIsNew) return undefined
  const recoveryPhrase = hasKeyFile ? phraseFromKey(masterKey) : undefined
  if (!isEmpty) return { account: undefined, recoveryPhrase, consoleToken: undefined }
  // One transaction: a start that is cut off leaves all or nothing, so there is never a second demo, nor half of one.
  return write(async (tx) => {
    const account = await addAccount(tx, { name: 'owner', mayUpload: true, mayImport: true, createdAtS: nowS(), by: 'server' })
    const { accountId } = account
    const link = hasConsole && (await addFirstUser(tx, { accountId, by: 'server', lifeS: LINK_LIFE_S, nowS: nowS() }))
    if (hasDemo) await addDemo(tx, nowS())
    return { account, recoveryPhrase, consoleToken: link ? link.token : undefined }
  })
}
