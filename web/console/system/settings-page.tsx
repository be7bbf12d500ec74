import { NumberInput, Select, TextInput } from '@mantine/core'
import { useSuspenseQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { useForm } from 'react-hook-form'
import type { AccountBody, OwnAccountBody } from '../../../src/http/api/account.ts'
import { callApi } from '../api.ts'
import { useMay } from '../sign-in/queries.ts'
import { FactList } from '../ui/fact-list.tsx'
import { changesIn, Form, SwitchField, useField } from '../ui/form.tsx'
import { listLanguages } from '../ui/languages.ts'
import { Page } from '../ui/page.tsx'
import { Section } from '../ui/section.tsx'
import { useChange } from '../ui/use-change.ts'
import { formatCount, formatDay } from '../units.ts'
import { accountQuery } from './queries.ts'
import { WHEN_FULL } from './settings.ts'
import styles from './system.module.css'
import { SystemParts } from './system-parts.tsx'

/** The settings of the account, with what they mean. */
export function SettingsPage() {
  const { data: account } = useSuspenseQuery(accountQuery)
  const mayEdit = useMay('editor')
  return (
    <Page title="System">
      <SystemParts />
      <Section title="Settings of the account">
        {mayEdit ? <SettingsForm account={account} /> : <p className={styles.soft}>Owners of the account change its settings.</p>}
      </Section>
      <Section title="Account">
        <FactList
          facts={[
            ['Name', account.name],
            ['Created', formatDay(Date.parse(account.createdAt) / 1000)],
            ['Videos', formatCount(account.videosCount)],
            ['A link may remove watermark and site', account.otpDefaultsRemovable ? 'Yes' : 'No: the defaults always apply'],
          ]}
        />
      </Section>
      <Section
        title="How long data is kept"
        lead="Then it is deleted automatically. The data of one viewer can be erased earlier, on the viewer’s page."
      >
        <FactList facts={listRetention(account.retention)} />
      </Section>
    </Page>
  )
}

/** Days that are fixed, or that the operator sets for all accounts. */
function listRetention({ viewerDataDays, statisticsDays, auditLogDays, trashDays }: OwnAccountBody['retention']) {
  return [
    [
      'What viewers watched',
      <span key="viewers">
        {viewerDataDays} days, with alerts and the names of viewers in counters. The server’s operator sets it for all accounts:{' '}
        <code>REELGATE_VIEWER_DATA_DAYS</code>
      </span>,
    ],
    ['Views, bandwidth and storage', `${statisticsDays} days`],
    ['Audit log', `${auditLogDays} days`],
    ['Videos in the trash', `${trashDays} days, then they and their keys are destroyed`],
  ] as const
}

type Settings = Pick<AccountBody, 'streamLimit' | 'whenFull' | 'deletesToTrash' | 'normalizesLoudness'> & {
  transcribeLanguage: string
  watchUrl: string
}

function SettingsForm({ account }: { account: OwnAccountBody }) {
  const form = useForm<Settings>({
    values: {
      ...{ streamLimit: account.streamLimit, whenFull: account.whenFull },
      ...{ deletesToTrash: account.deletesToTrash, normalizesLoudness: account.normalizesLoudness },
      ...{ transcribeLanguage: account.transcribeLanguage ?? '', watchUrl: account.watchUrl ?? '' },
    },
    resetOptions: { keepDirtyValues: true },
  })
  const streamLimit = useField({ control: form.control, name: 'streamLimit' })
  const whenFull = useField({ control: form.control, name: 'whenFull' })
  const transcribeLanguage = useField({ control: form.control, name: 'transcribeLanguage' })
  const languages = useMemo(() => listLanguages(account.transcribeLanguage ?? ''), [account.transcribeLanguage])
  const { isDirty, dirtyFields } = form.formState
  const save = useChange({
    call(settings: Settings) {
      const changed = Object.entries(changesIn(settings, dirtyFields))
      const body = Object.fromEntries(changed.map(([name, value]) => [name, typeof value === 'boolean' ? Number(value) : value]))
      return callApi<AccountBody>('PUT', 'account', { body })
    },
    announced: 'The settings have been saved.',
    onDone: (_reply, settings) => form.reset(settings),
    refreshes: [accountQuery.queryKey],
  })
  return (
    <Form
      className={styles.form}
      action="Save the settings"
      change={save}
      isDisabled={!isDirty}
      onSubmit={form.handleSubmit((settings) => save.mutate(settings))}
    >
      <NumberInput
        label="Screens of one viewer at the same time"
        description="For links with a userId. 0: no limit. A video or a link may have its own."
        min={0}
        max={100}
        allowDecimal={false}
        {...streamLimit}
        onChange={(value) => streamLimit.onChange(Number(value) || 0)}
      />
      <Select label="When a viewer starts one more" data={WHEN_FULL} allowDeselect={false} {...whenFull} />
      <SwitchField
        label="The API deletes into the trash"
        description="As the console always does: deleted videos can be restored for 7 days."
        control={form.control}
        name="deletesToTrash"
      />
      <SwitchField
        label="All videos equally loud"
        description="Speech of new videos plays at −16 LUFS, however it was recorded. What is encoded already stays."
        control={form.control}
        name="normalizesLoudness"
      />
      <TextInput
        label="Where your viewers watch"
        description="The link on public pages of your videos, which show title and poster. {id} is replaced by the id of the video."
        placeholder="https://school.example/lessons/{id}"
        type="url"
        {...form.register('watchUrl')}
      />
      {account.transcribes && (
        <Select
          label="Captions of speech for all new videos"
          description="The language that is spoken in them. None: only those that you ask for are transcribed."
          placeholder="None"
          data={languages}
          searchable
          clearable
          nothingFoundMessage="There is no such language."
          {...transcribeLanguage}
          value={transcribeLanguage.value || null}
          onChange={(language) => transcribeLanguage.onChange(language ?? '')}
        />
      )}
    </Form>
  )
}
