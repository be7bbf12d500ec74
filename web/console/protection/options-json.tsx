import { Button, JsonInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { callApi } from '../api.ts'
import { Dialog } from '../ui/dialog.tsx'
import { FailureNotice } from '../ui/failure.tsx'
import forms from '../ui/form.module.css'
import { type OtpDefaults, readOptions } from './protection.ts'

type OptionsJsonProps = {
  /** Where they are saved, such as `otp-defaults`. */
  path: string
  options: OtpDefaults
  onSaved(reply: SavedOptions): Promise<void>
}

/** What the server answers when options are saved. */
export type SavedOptions = { eachOtpNeeds?: string[] }

/** All options as they are stored, whatever they contain: the last resort, for those that the form does not know. */
export function OptionsJson({ path, options, onSaved }: OptionsJsonProps) {
  const stored = JSON.stringify(options, undefined, 2)
  const [text, setText] = useState(stored)
  const [isRemoving, setRemoving] = useState(false)
  const edited = readOptions(text)
  const save = useMutation({
    mutationFn: (body: OtpDefaults) => callApi<SavedOptions>('PUT', path, { body }),
    onSuccess: onSaved,
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (edited) save.mutate(edited)
  }
  return (
    <>
      <form className={forms.form} onSubmit={submit}>
        <JsonInput
          label="Options as JSON"
          description="The same names as the body of an OTP: the API reference has them."
          error={edited ? undefined : 'This is no JSON object, such as {"ttl": 300}.'}
          autosize
          minRows={4}
          maxRows={24}
          styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
          value={text}
          onChange={setText}
        />
        {save.error && !isRemoving && <FailureNotice error={save.error} />}
        <div className={forms.buttons}>
          <Button type="submit" variant="default" loading={save.isPending} disabled={!edited || text === stored}>
            Save the JSON
          </Button>
          <Button variant="subtle" color="stop" disabled={stored === '{}'} onClick={() => setRemoving(true)}>
            Remove all options
          </Button>
        </div>
      </form>
      {isRemoving && (
        <Dialog
          title="Remove all options?"
          onClose={() => setRemoving(false)}
          action="Remove all"
          color="stop"
          isBusy={save.isPending}
          error={save.error}
          onSubmit={() => save.mutate({})}
        >
          <p>Links that are issued from now on get none of them: {Object.keys(options).join(', ')}.</p>
        </Dialog>
      )}
    </>
  )
}
