import { addAccount, hasNoAccounts } from '../accounts/account.ts'
import { phraseFromKey } from '../crypto/recovery-phrase.ts'
import { addDemo } from '../demo/demo.ts'
import type { Foundation } from './open-foundation.ts'

/** What a first start made and what exists nowhere else: the owner is shown it once. */
export type FirstStart = {
  account: { accountId: string; apiKey: string } | undefined
  /** Undefined when the environment holds the key. */
  recoveryPhrase: string[] | undefined
}

/** Makes the first account, and the demo with it, where there is no account yet. Undefined: this is not a first start. */
export async function prepareFirstStart(
  { db, write, nowS, masterKey, masterKeyIsNew }: Pick<Foundation, 'db' | 'write' | 'nowS' | 'masterKey' | 'masterKeyIsNew'>,
  { hasKeyFile, hasDemo }: { hasKeyFile: boolean; hasDemo: boolean },
): Promise<FirstStart | undefined> {
  const isEmpty = await hasNoAccounts({ db })
  if (!isEmpty && !masterKeyIsNew) return undefined
  const recoveryPhrase = hasKeyFile ? phraseFromKey(masterKey) : undefined
  if (!isEmpty) return { account: undefined, recoveryPhrase }
  // One transaction: a start that is cut off leaves both or neither, so there is never a second demo, nor half of one.
  const account = await write(async (tx) => {
    const made = await addAccount(tx, { name: 'owner', mayUpload: true, mayImport: true, createdAtS: nowS(), by: 'server' })
    if (hasDemo) await addDemo(tx, nowS())
    return made
  })
  return { account, recoveryPhrase }
}
