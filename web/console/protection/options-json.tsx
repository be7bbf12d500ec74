import { Button, JsonInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { useForm } from 'react-hook-form'
import { callApi } from '../api.ts'
import { Dialog } from '../ui/dialog.tsx'
import { Form, useField } from '../ui/form.tsx'
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
  const [isRemoving, setRemoving] = useState(false)
  const form = useForm({ values: { text: JSON.stringify(options, undefined, 2) }, mode: 'onChange' })
  const { errors, isDirty, isValid } = form.formState
  const text = useField({ control: form.control, name: 'text', rules: { validate: (text) => readOptions(text) !== undefined } })
  const save = useMutation({
    mutationFn: (body: OtpDefaults) => callApi<SavedOptions>('PUT', path, { body }),
    async onSuccess(reply) {
      setRemoving(false)
      await onSaved(reply)
    },
  })
  return (
    <>
      <Form
        action="Save the JSON"
        variant="default"
        change={{ isPending: save.isPending, error: isRemoving ? null : save.error }}
        isDisabled={!isDirty || !isValid}
        onSubmit={form.handleSubmit(({ text }) => save.mutate(readOptions(text) ?? options))}
        more={
          <Button variant="subtle" color="stop" disabled={Object.keys(options).length === 0} onClick={() => setRemoving(true)}>
            Remove all options
          </Button>
        }
      >
        <JsonInput
          label="Options as JSON"
          description="The same names as the body of an OTP: the API reference has them."
          error={errors.text && 'This is no JSON object, such as {"ttl": 300}.'}
          autosize
          minRows={4}
          maxRows={24}
          styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
          {...text}
        />
      </Form>
      {isRemoving && (
        <Dialog
          title="Remove all options?"
          onClose={() => setRemoving(false)}
          action="Remove all"
          color="stop"
          change={save}
          onSubmit={() => save.mutate({})}
        >
          <p>Links that are issued from now on get none of them: {Object.keys(options).join(', ')}.</p>
        </Dialog>
      )}
    </>
  )
}
