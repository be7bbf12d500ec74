import { Button, FileButton, TextInput } from '@mantine/core'

type TextFieldProps = { label?: string; value: string; hint?: string; onChange(text: string): void }

/** The code of a language. `hint` follows what it says of that. */
export function LanguageField({ label = 'Language', value, hint, onChange }: TextFieldProps) {
  return (
    <TextInput
      label={label}
      description={['Its code, such as en, de or pt-BR.', hint].join(' ').trim()}
      value={value}
      maxLength={35}
      onChange={({ target }) => onChange(target.value)}
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
  return (
    <FileButton accept={accept} onChange={(file) => file && onChoose(file)}>
      {(props) => (
        <Button {...props} loading={isSending} disabled={language.trim() === ''}>
          Choose a file
        </Button>
      )}
    </FileButton>
  )
}
