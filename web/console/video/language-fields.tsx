import { Autocomplete, Button, FileButton, TextInput } from '@mantine/core'
import { useState } from 'react'
import forms from '../ui/form.module.css'
import { languageName } from '../ui/language-name.ts'
import { listLanguages } from '../ui/languages.ts'

type TextFieldProps = { label?: string; value: string; hint?: string; onChange(text: string): void }

/** A language, by its name in the reader's own or by its code. `value` is the code, `hint` follows what it says of both. */
export function LanguageField({ label = 'Language', value, hint, onChange }: TextFieldProps) {
  const [text, setText] = useState(() => (value === '' ? '' : languageName(value)))
  const [codes] = useState(() => new Map(listLanguages(value).map((language) => [language.label, language.value])))
  const type = (typed: string) => {
    setText(typed)
    const wanted = typed.trim().toLowerCase()
    const [, code = typed.trim()] = [...codes].find(([name]) => name.toLowerCase() === wanted) ?? []
    onChange(code)
  }
  return (
    <Autocomplete
      label={label}
      description={['Its name, or a code such as pt-BR.', hint].join(' ').trim()}
      data={[...codes.keys()]}
      value={value === '' ? '' : text}
      onChange={type}
      maxLength={60}
      limit={6}
      openOnFocus={false}
    />
  )
}

/** What viewers read of an audio track. `hint`: what an empty one means. */
export function TrackNameField({ value, hint, onChange }: TextFieldProps) {
  return (
    <TextInput
      label="Name"
      description={['As viewers read it.', hint].join(' ').trim()}
      value={value}
      maxLength={60}
      onChange={({ target }) => onChange(target.value)}
    />
  )
}

type ChooseFileProps = { accept: string; language: string; isSending: boolean; onChoose(file: File): void }

/** Sends a file in a language, once one is named. */
export function ChooseFile({ accept, language, isSending, onChoose }: ChooseFileProps) {
  const isNamed = language.trim() !== ''
  return (
    <>
      <FileButton accept={accept} onChange={(file) => file && onChoose(file)}>
        {(props) => (
          <Button {...props} loading={isSending} disabled={!isNamed}>
            Choose a file
          </Button>
        )}
      </FileButton>
      {!isNamed && <span className={forms.hint}>Name its language first.</span>}
    </>
  )
}
