import { useSuspenseQuery } from '@tanstack/react-query'
import { callApi, csvUrl } from '../api.ts'
import { accountQuery } from '../system/queries.ts'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { FactList } from '../ui/fact-list.tsx'
import { FailureNotice } from '../ui/failure.tsx'
import { Page } from '../ui/page.tsx'
import { RowButton } from '../ui/row-button.tsx'
import { Section } from '../ui/section.tsx'
import { useChange } from '../ui/use-change.ts'
import { formatBytes, formatIn } from '../units.ts'
import { DevelopParts } from './develop-parts.tsx'
import { type Ban, bansQuery, keysQuery } from './queries.ts'

/** The account's limits, and what is banned because it went over them. */
export function LimitsPage() {
  const { data: account } = useSuspenseQuery(accountQuery)
  const { data: bans } = useSuspenseQuery(bansQuery)
  const { data: keys } = useSuspenseQuery(keysQuery)
  const lift = useChange({
    call: ({ subject }: Ban) => callApi<unknown>('DELETE', 'bans', { query: { subject } }),
    announced: 'The ban has been lifted.',
    refreshes: [bansQuery.queryKey],
  })
  const nameOf = ({ scope, subject }: Ban) =>
    scope === 'account' ? 'The whole account' : `The key ${keys.find(({ id }) => id === subject)?.name ?? subject}`
  const columns: Column<Ban>[] = [
    { name: 'Who', kind: 'title', cell: nameOf },
    { name: 'Calls', cell: ({ budget }) => BUDGETS[budget] ?? budget },
    { name: 'Ends', cell: ({ endsAt }) => formatIn(Date.parse(endsAt) / 1000) },
    {
      name: 'Actions',
      kind: 'actions',
      cell: (ban) => (
        <RowButton aria-label={`Lift the ban of ${nameOf(ban)}`} onClick={() => lift.mutate(ban)}>
          Lift
        </RowButton>
      ),
    },
  ]
  return (
    <Page title="Develop">
      <DevelopParts />
      <Section
        title="Bans"
        lead="A program that keeps calling over its limit is banned for some minutes, so that others are served. Correct it before you lift its ban."
      >
        {lift.error && <FailureNotice error={lift.error} />}
        <DataTable
          label="Bans"
          csv={csvUrl('bans')}
          columns={columns}
          rows={bans}
          keyOf={({ subject, budget }) => `${subject} ${budget}`}
          empty={<p>Nothing is banned.</p>}
        />
      </Section>
      <Section title="Limits of the account">
        <FactList
          facts={[
            ['Rate limits', account.limitFactor === 1 ? 'The usual ones' : `${account.limitFactor} times the usual ones`],
            ['Rows on a page of a list', `at most ${account.pageMax}`],
            ['Storage', account.storageLimitBytes === null ? 'No limit' : `at most ${formatBytes(account.storageLimitBytes)}`],
            ['Uploads', account.mayUpload ? 'Allowed' : 'Not allowed'],
            ['Imports from addresses', account.mayImport ? 'Allowed' : 'Not allowed'],
          ]}
        />
      </Section>
    </Page>
  )
}

const BUDGETS: Readonly<Record<string, string>> = {
  reads: 'Reading',
  writes: 'Changing',
  otp: 'Issuing OTPs',
  uploads: 'Uploading',
}
