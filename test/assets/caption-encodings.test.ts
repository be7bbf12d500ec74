import { describe, expect, test } from 'vitest'
import { parseInWorker } from '../../src/assets/caption.ts'
import { decodeCaptions } from '../../src/assets/caption-encoding.ts'
import { sampleOf } from '../sample.ts'
import { encodeAs, TEXTS, toSrt } from './caption-samples.ts'

// Captions in the encodings of old programs, with the language as the owner gives it.

const SAMPLES = TEXTS.flatMap(({ language, encodings, lines }) => encodings.map((encoding) => ({ language, encoding, lines })))

/** What is stored of captions, or undefined where they are refused. */
function read(bytes: Buffer, language: string): string | undefined {
  try {
    return decodeCaptions(bytes, language).normalize()
  } catch (error) {
    expect(error).toMatchObject({ kind: 'invalid', message: expect.stringMatching(/UTF-8/) })
    return undefined
  }
}

test.each(SAMPLES)('I-18: captions in $language and $encoding keep every letter', ({ language, encoding, lines }) => {
  expect(read(encodeAs(encoding, toSrt(lines)), language)).toBe(toSrt(lines))
})

describe('I-18: never other letters: captions are read right or refused', () => {
  test.each(sampleOf('captions of a line', SAMPLES, 8))(
    'a single line in $language and $encoding',
    ({ language, encoding, lines }) => {
      for (const line of lines) expect([toSrt([line]), undefined]).toContain(read(encodeAs(encoding, toSrt([line])), language))
    },
  )

  test.each(sampleOf('captions in capitals', SAMPLES, 8))(
    'capitals in $language and $encoding',
    ({ language, encoding, lines }) => {
      const capitals = toSrt(lines.map((line) => line.toUpperCase().replaceAll('’', "'")))
      expect([capitals, undefined]).toContain(read(encodeAs(encoding, capitals), language))
    },
  )

  test.each(sampleOf('captions of another language', SAMPLES, 2))(
    '$language and $encoding with each other language, or one without old encodings',
    ({ language, encoding, lines }) => {
      const bytes = encodeAs(encoding, toSrt(lines))
      for (const other of [...TEXTS.map((text) => text.language), 'en', 'hy'])
        if (other !== language) expect([toSrt(lines), undefined]).toContain(read(bytes, other))
    },
  )

  test.each([
    ['UTF-8 with a damaged character', Buffer.concat([Buffer.from(toSrt(['Größe, café'])), Buffer.from([0xe9])]), 'de'],
    ['German of DOS', Buffer.from('1\r\n00:01 --> 00:02\r\nGr\x94\xe1e und sch\x94ne \x9abung t\x84glich\r\n', 'latin1'), 'de'],
  ])('%s', (_, bytes, language) => expect(read(bytes, language)).toBeUndefined())
})

test('I-18: so do long captions, however their characters lie in what is examined', () => {
  const { lines = [] } = TEXTS.find(({ language }) => language === 'ja') ?? {}
  const long = toSrt(lines).repeat(2_500)
  expect(read(encodeAs('shift_jis', long), 'ja') === long).toBe(true)
})

test('I-18: English with typographic quotes in Windows-1252 keeps them', () => {
  const quoted = toSrt(['Don’t worry, it’s fine.', '“Hello,” she said — and left…'])
  expect(read(encodeAs('windows-1252', quoted), 'en')).toBe(quoted)
})

test('I-18: what is added to a video has the right letters, by its language', async () => {
  const [{ lines } = { lines: [] }] = TEXTS
  for (const language of ['ru', 'rus', 'ru-ru'])
    expect((await parseInWorker(encodeAs('windows-1251', toSrt(lines)), language)).toString()).toContain(lines[0])
  await expect(parseInWorker(encodeAs('windows-1251', toSrt(lines)), 'en')).rejects.toThrow(/not sure which other encoding/)
})
