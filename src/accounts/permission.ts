/** What a key may do: every read but of clear files, these files, issuing OTPs, uploads and imports, all management (wire-contract.md, section 1). */
export const PERMISSIONS = ['viewer', 'downloader', 'otpCreator', 'uploader', 'editor'] as const
export type Permission = (typeof PERMISSIONS)[number]

/** The account of a caller, and what the caller may do there. */
type AccountAccess = {
  accountId: string
  permissions: readonly Permission[]
  mayUpload: boolean
  mayImport: boolean
  pageMax: number
  /** Whether what it deletes goes to the trash. */
  deletesToTrash: boolean
  /** Unchanged as long as nothing that a list of the account's videos could show has changed. */
  changeNumber: number
  /** The account's rate limits are multiplied by this. */
  limitFactor: number
}

/** The account and key that a request is authenticated as. */
export type ApiKeyHolder = AccountAccess & { apiKeyId: string }

/** The person who is signed in, with the account that is looked at. */
export type SignedInUser = AccountAccess & {
  consoleUserId: string
  signInId: string
  signedInAtS: number
  isAdministrator: boolean
}

export type Caller = ApiKeyHolder | SignedInUser
