import { Failure } from '../errors.ts'

// The one place that knows which texts an owner may give a video or a folder. They are kept as they came, character for character.

const MAX_TITLE_CHARACTERS = 500
const MAX_DESCRIPTION_CHARACTERS = 5_000
const MAX_FOLDER_NAME_CHARACTERS = 255

/** @throws Failure `invalid` */
export function parseTitle(text: string): string {
  if (text === '' || !isKept(text, MAX_TITLE_CHARACTERS))
    throw new Failure('invalid', `A title has 1 to ${MAX_TITLE_CHARACTERS} characters, none of them U+0000 or half a character.`)
  return text
}

/** @throws Failure `invalid` */
export function parseDescription(text: string): string {
  if (!isKept(text, MAX_DESCRIPTION_CHARACTERS))
    throw new Failure(
      'invalid',
      `A description has at most ${MAX_DESCRIPTION_CHARACTERS} characters, none of them U+0000 or half a character.`,
    )
  return text
}

/** @throws Failure `invalid` */
export function parseFolderName(text: string): string {
  if (text === '' || !isKept(text, MAX_FOLDER_NAME_CHARACTERS))
    throw new Failure(
      'invalid',
      `A folder’s name has 1 to ${MAX_FOLDER_NAME_CHARACTERS} characters, none of them U+0000 or half a character.`,
    )
  return text
}

function isKept(text: string, maxCharacters: number): boolean {
  return [...text].length <= maxCharacters && text.isWellFormed() && !text.includes('\0')
}
