import { Failure } from '../errors.ts'

// The rules for the texts of videos and folders. A valid text is stored unchanged.

const MAX_TITLE_CHARACTERS = 500
const MAX_DESCRIPTION_CHARACTERS = 5_000
const MAX_FOLDER_NAME_CHARACTERS = 255

/** @throws Failure `invalid` */
export function parseTitle(text: string): string {
  if (text === '' || !isValidText(text, MAX_TITLE_CHARACTERS))
    throw new Failure('invalid', `A title must have 1 to ${MAX_TITLE_CHARACTERS} characters, without NUL or unpaired surrogates.`)
  return text
}

/** @throws Failure `invalid` */
export function parseDescription(text: string): string {
  if (!isValidText(text, MAX_DESCRIPTION_CHARACTERS))
    throw new Failure(
      'invalid',
      `A description must have at most ${MAX_DESCRIPTION_CHARACTERS} characters, without NUL or unpaired surrogates.`,
    )
  return text
}

/** @throws Failure `invalid` */
export function parseFolderName(text: string): string {
  if (text === '' || !isValidText(text, MAX_FOLDER_NAME_CHARACTERS))
    throw new Failure(
      'invalid',
      `A folder name must have 1 to ${MAX_FOLDER_NAME_CHARACTERS} characters, without NUL or unpaired surrogates.`,
    )
  return text
}

function isValidText(text: string, maxCharacters: number): boolean {
  return [...text].length <= maxCharacters && text.isWellFormed() && !text.includes('\0')
}
