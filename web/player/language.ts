import { addTranslation, setLanguage } from 'media-chrome/dist/utils/i18n.js'
import { BAR_LABELS, type Language } from '../languages/contents.ts'
import { ENGLISH, type Messages, type PluralKey, type TextKey } from '../languages/english.ts'
import { LANGUAGES } from '../languages/languages.ts'

const RIGHT_TO_LEFT = 'ar'

let code = 'en'
let messages: Messages = ENGLISH
let replaced: Readonly<Record<string, string>> = {}
let ownersOwn: Readonly<Record<string, string>> = {}

/**
 * The language of the player: the first of these that it has.
 * @param wanted language tags such as `pt-BR`, the most wanted first
 * @returns a code such as `pt`; `en` where there is none
 */
export function chooseLanguage(wanted: readonly string[]): string {
  const codes = wanted.map((tag) => tag.toLowerCase().split('-', 1)[0] ?? '')
  return codes.find((code) => code === 'en' || Object.hasOwn(LANGUAGES, code)) ?? 'en'
}

/**
 * Loads a language for all that is shown from then on. Where it cannot be had, the player speaks English.
 * @returns what the page says of its language
 */
export async function useLanguage(chosen: string): Promise<{ lang: string; dir: 'ltr' | 'rtl' }> {
  const loaded = await LANGUAGES[chosen]?.().catch(() => undefined)
  if (loaded) {
    code = chosen
    messages = loaded.LANGUAGE.messages
    addTranslation(code, barLabels(loaded.LANGUAGE))
  }
  setLanguage(code)
  return { lang: code, dir: code === RIGHT_TO_LEFT ? 'rtl' : 'ltr' }
}

/** Sentences of the page around, by their name in `languages/english.ts`, in place of the player's own. Others stay as they are. */
export function replaceMessages(sentences: Readonly<Record<string, unknown>>): void {
  replaced = { ...replaced, ...knownOf(sentences) }
}

/** The defaults of the owner's account, by language. What the page around replaces goes before them. */
export function useOwnersSentences(byLanguage: Readonly<Record<string, Readonly<Record<string, string>>>>): void {
  ownersOwn = knownOf(Object.hasOwn(byLanguage, code) ? (byLanguage[code] ?? {}) : {})
}

function knownOf(sentences: Readonly<Record<string, unknown>>): Record<string, string> {
  const known = Object.entries(sentences).filter(
    (entry): entry is [string, string] => Object.hasOwn(ENGLISH, entry[0]) && typeof entry[1] === 'string',
  )
  return Object.fromEntries(known.map(([key, text]) => [key, text.slice(0, MAX_SENTENCE_LENGTH)]))
}

const MAX_SENTENCE_LENGTH = 500

/** A sentence in the viewer's language. @param values of its `{places}`; numbers in the form of the language */
export function message(key: TextKey, values?: Readonly<Record<string, string | number>>): string {
  return fill(replaced[key] ?? ownersOwn[key] ?? messages[key], values)
}

/** A sentence with the number `n`, in the plural form that it needs. */
export function pluralMessage(key: PluralKey, n: number): string {
  const forms = messages[key]
  return fill(replaced[key] ?? ownersOwn[key] ?? forms[new Intl.PluralRules(code).select(n)] ?? forms.other, { n })
}

/** Words in a row: "one and two". */
export function listWords(words: readonly string[]): string {
  return new Intl.ListFormat(code, { type: 'conjunction' }).format(words)
}

function fill(sentence: string, values: Readonly<Record<string, string | number>> = {}): string {
  return sentence.replace(/\{(\w+)\}/g, (place, name) => {
    const value = Object.hasOwn(values, name) ? values[name] : undefined
    return typeof value === 'number' ? value.toLocaleString(code) : (value ?? place)
  })
}

function barLabels({ messages: { play, pause }, bar }: Language): Record<string, string> {
  const labels = Object.entries(BAR_LABELS).map(([name, label]) => [name, bar[label]])
  return { ...Object.fromEntries(labels), play, pause, Play: play, Pause: pause }
}
