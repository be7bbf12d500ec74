import { readFile, stat } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { ENGLISH } from '../../web/languages/english.ts'
import { LANGUAGES } from '../../web/languages/languages.ts'
import {
  chooseLanguage,
  message,
  pluralMessage,
  replaceMessages,
  useLanguage,
  useOwnersSentences,
} from '../../web/player/language.ts'

// The compiler sees that no language lacks a sentence.

const FOLDER = new URL('../../dist/player/', import.meta.url)
const NAMES = Object.keys(LANGUAGES)

test.each([
  { wanted: ['pt-BR', 'en'], chosen: 'pt', why: 'the first that it has, whatever the country' },
  { wanted: ['nl', 'ZH-Hant-TW', 'de'], chosen: 'zh', why: 'languages that it has not are passed over' },
  { wanted: ['en-GB', 'fr'], chosen: 'en', why: 'English is one of them' },
  { wanted: ['constructor', ''], chosen: 'en', why: 'no name of a property is a language' },
  { wanted: [], chosen: 'en', why: 'English where nothing is wanted' },
])('of the languages $wanted the player speaks $chosen: $why', ({ wanted, chosen }) => {
  expect(chooseLanguage(wanted)).toBe(chosen)
})

test.each(NAMES)('each sentence in %s has the values of the English one, and each number its plural forms', async (code) => {
  const { messages, bar } = (await LANGUAGES[code]?.())?.LANGUAGE ?? {}
  const rules = new Intl.PluralRules(code).resolvedOptions().pluralCategories
  for (const [key, english] of Object.entries(ENGLISH)) {
    const sentence = Object.entries(messages ?? {}).find(([name]) => name === key)?.[1]
    const sentences = typeof sentence === 'string' ? [sentence] : Object.values(sentence ?? {})
    expect(sentences.length, key).toBeGreaterThan(0)
    for (const each of sentences) expect(each.trim(), key).toBe(each)
    if (typeof english === 'string') expect(placesOf(sentences[0]), key).toEqual(placesOf(english))
    else expect(rules, key).toEqual(expect.arrayContaining(Object.keys(sentence ?? {})))
  }
  expect(placesOf(bar?.['time-of'])).toEqual(['{currentTime}', '{totalTime}'])
  expect(placesOf(bar?.['chapter-is'])).toEqual(['{chapterName}'])
})

test('no language is more than 3 kB, and none is loaded with the player', async () => {
  const manifest: Record<string, { file: string; isDynamicEntry?: boolean }> = JSON.parse(
    await readFile(new URL('manifest.json', FOLDER), 'utf8'),
  )
  const files = Object.entries(manifest).filter(([source]) => source.startsWith('languages/'))
  expect(files.map(([, { isDynamicEntry }]) => isDynamicEntry)).toEqual(NAMES.map(() => true))
  for (const [source, { file }] of files)
    expect((await stat(fileURLToPath(new URL(`${file}.br`, FOLDER)))).size, source).toBeLessThan(3000)
})

function placesOf(sentence = ''): string[] {
  return (sentence.match(/\{\w+\}/g) ?? []).sort()
}

test('an owner’s own sentences are those of the viewer’s language, and a page’s go before them', async () => {
  const say = () => [message('watch-again'), message('play'), pluralMessage('seconds-back', 10)]
  await useLanguage('de')
  useOwnersSentences({ de: { 'watch-again': 'Noch einmal', 'seconds-back': '{n} s zurück', unknown: 'x' }, en: { play: 'Go' } })
  expect(say()).toEqual(['Noch einmal', 'Abspielen', '10 s zurück'])
  replaceMessages({ 'watch-again': 'Wieder von vorn' })
  expect(say()[0]).toBe('Wieder von vorn')
  useOwnersSentences({})
  expect(say()).toEqual(['Wieder von vorn', 'Abspielen', '10 Sekunden zurück'])
})
