/**
 * The form in which texts are compared when they are searched: NFC, lower case, one sigma. What it does not do is documented too:
 * ß is not ss, and letters keep their accents.
 */
export function foldCase(text: string): string {
  return text.normalize('NFC').toLowerCase().replaceAll('ς', 'σ').normalize('NFC')
}
