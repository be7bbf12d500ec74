import { Select, TextInput } from '@mantine/core'
import { useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import type { OwnAccountBody } from '../../../src/http/api/account.ts'
import { ENGLISH } from '../../languages/english.ts'
import { LANGUAGES } from '../../languages/languages.ts'
import { callApi } from '../api.ts'
import { useMay } from '../sign-in/queries.ts'
import { accountQuery } from '../system/queries.ts'
import { Form } from '../ui/form.tsx'
import { languageName } from '../ui/language-name.ts'
import { RowButton } from '../ui/row-button.tsx'
import { Section } from '../ui/section.tsx'
import { useChange } from '../ui/use-change.ts'
import styles from './sentences-section.module.css'

type Sentences = OwnAccountBody['playerSentences']
type Texts = Readonly<Record<string, unknown>>

/** What the player says in the owner's words, language by language. */
export function SentencesSection() {
  const { data: account } = useSuspenseQuery(accountQuery)
  const mayEdit = useMay('editor')
  const { playerSentences } = account
  const save = useChange({
    call: (sentences: Sentences) => callApi('PUT', 'account', { body: { playerSentences: sentences } }),
    announced: 'The sentences have been saved.',
    refreshes: [accountQuery.queryKey],
  })
  const own = Object.entries(playerSentences).flatMap(([language, named]) =>
    Object.entries(named).map(([name, text]) => ({ language, name, text })),
  )
  return (
    <Section
      title="What the player says"
      lead="Any of its sentences in your own words, for viewers who watch in that language. A page that sets its own goes before them."
    >
      {own.length > 0 && (
        <ul className={styles.list} aria-label="Sentences in your words">
          {own.map(({ language, name, text }) => (
            <li key={`${language} ${name}`}>
              <span>
                <b lang={language} dir="auto">
                  {text}
                </b>{' '}
                <span className={styles.soft}>
                  {languageName(language)}: {textOf(ENGLISH, name)}
                </span>
              </span>
              {mayEdit && (
                <RowButton
                  aria-label={`Remove “${text}”`}
                  disabled={save.isPending}
                  onClick={() => save.mutate(withSentence(playerSentences, { language, name, text: '' }))}
                >
                  Remove
                </RowButton>
              )}
            </li>
          ))}
        </ul>
      )}
      {mayEdit && <SentenceForm sentences={playerSentences} save={save} />}
    </Section>
  )
}

type FormProps = { sentences: Sentences; save: { isPending: boolean; error: unknown; mutate(sentences: Sentences): void } }

const CODES = ['en', ...Object.keys(LANGUAGES)]

function SentenceForm({ sentences, save }: FormProps) {
  const [language, setLanguage] = useState('en')
  const [name, setName] = useState<string | null>(null)
  const [text, setText] = useState('')
  const { data: texts = ENGLISH } = useQuery<Texts>({
    queryKey: ['player-sentences', language],
    queryFn: async () => (await LANGUAGES[language]?.())?.LANGUAGE.messages ?? ENGLISH,
    staleTime: Number.POSITIVE_INFINITY,
  })
  const places = name === null ? [] : (textOf(texts, name).match(/\{\w+\}/g) ?? [])
  const choose = (chosen: { language?: string; name?: string | null }) => {
    const next = { language, name, ...chosen }
    setLanguage(next.language)
    setName(next.name)
    setText(next.name === null ? '' : (sentences[next.language]?.[next.name] ?? ''))
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (name !== null) save.mutate(withSentence(sentences, { language, name, text }))
  }
  return (
    <Form action="Save the sentence" change={save} isDisabled={name === null || text.trim() === ''} onSubmit={submit}>
      <Select
        label="Language"
        data={CODES.map((value) => ({ value, label: languageName(value) }))}
        allowDeselect={false}
        value={language}
        onChange={(chosen) => choose({ language: chosen ?? 'en' })}
      />
      <Select
        label="Sentence"
        placeholder="Search its English words"
        data={Object.keys(ENGLISH).map((value) => ({ value, label: textOf(ENGLISH, value) }))}
        searchable
        nothingFoundMessage="The player has no such sentence."
        value={name}
        onChange={(chosen) => choose({ name: chosen })}
      />
      <TextInput
        label="In your words"
        description={places.length > 0 ? `Your words keep ${places.join(', ')}, which the player replaces.` : undefined}
        placeholder={name === null ? undefined : textOf(texts, name)}
        maxLength={500}
        dir="auto"
        lang={language}
        value={text}
        onChange={({ currentTarget }) => setText(currentTarget.value)}
      />
    </Form>
  )
}

/** @param text empty: the player's own again */
function withSentence(
  sentences: Sentences,
  { language, name, text }: { language: string; name: string; text: string },
): Sentences {
  const { [name]: _before, ...others } = sentences[language] ?? {}
  return { ...sentences, [language]: text.trim() === '' ? others : { ...others, [name]: text.trim() } }
}

/** A sentence; of one with a number its most general form. */
function textOf(texts: Texts, name: string): string {
  const text = texts[name]
  if (typeof text === 'string') return text
  return typeof text === 'object' && text !== null && 'other' in text ? String(text.other) : name
}
