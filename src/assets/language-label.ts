/** A language's own name for itself. @param language BCP 47 */
export function languageLabel(language: string): string {
  if (language === 'und') return 'Unknown language'
  const label = new Intl.DisplayNames([language], { type: 'language' }).of(language) ?? language
  const [first = '', ...rest] = label.replaceAll('"', '')
  return first.toLocaleUpperCase(language) + rest.join('')
}
