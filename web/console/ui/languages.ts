import { languageName } from './language-name.ts'

/** Those of Whisper, because programs that transcribe know them; of any other, people type the code. */
const CODES =
  'af am ar as az ba be bg bn bo br bs ca cs cy da de el en es et eu fa fi fo fr gl gu ha he hi hr ht hu hy id is it ja ka kk km kn ko la lb ln lo lt lv mg mi mk ml mn mr ms mt my ne nl nn no oc pa pl ps pt ro ru sa sd si sk sl sn so sq sr su sv sw ta te tg th tk tl tr tt uk ur uz vi yi yo zh'

/** Languages to choose from, by their names. @param known one that was chosen elsewhere, by its code; may be empty */
export function listLanguages(known: string): { value: string; label: string }[] {
  const codes = new Set(CODES.split(' ').concat(known === '' ? [] : known))
  return Array.from(codes, (value) => ({ value, label: languageName(value) })).sort((a, b) => a.label.localeCompare(b.label))
}
