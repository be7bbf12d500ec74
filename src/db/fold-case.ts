/**
 * The form in which texts are compared in searches: NFC, lower case, one sigma. As documented, ß is not folded to ss, and letters
 * keep their accents.
 */
export function foldCase(text: string): string {
  return text.normalize('NFC').toLowerCase().replaceAll('ς', 'σ').normalize('NFC')
}
