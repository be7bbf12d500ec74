/** What some checks need beyond an address and a key; each is an option of the command line. */
export const REQUIREMENTS = {
  'other-key': 'an API secret of another account',
  'permission-keys': 'PERMISSION=SECRET,… for all five permissions: keys of the same account that hold this one alone',
  'off-key': 'an API secret of an account whose uploads and imports are off',
  listen: 'HOST:PORT where this suite serves videos and receives webhooks; the server must be able to reach it',
  exceed: 'exceed the upload limit once; the server then refuses uploads for up to a minute',
} as const
export type Requirement = keyof typeof REQUIREMENTS
