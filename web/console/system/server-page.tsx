import { Button, Progress } from '@mantine/core'
import { useSuspenseQuery } from '@tanstack/react-query'
import type { SystemStatusBody } from '../../../src/http/console/system.ts'
import { callApi, csvUrl } from '../api.ts'
import { Ago } from '../ui/ago.tsx'
import { CodeBlock } from '../ui/code-block.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { FactList } from '../ui/fact-list.tsx'
import { FailureNotice } from '../ui/failure.tsx'
import { Page } from '../ui/page.tsx'
import { Section } from '../ui/section.tsx'
import { StateWord } from '../ui/state-word.tsx'
import { useChange } from '../ui/use-change.ts'
import { formatBytes, formatCount } from '../units.ts'
import { type Check, checksQuery, type Server, serversQuery, statusQuery } from './queries.ts'
import { SystemParts } from './system-parts.tsx'
import { Workers } from './workers.tsx'

const OLD_BACKUP_MS = 7 * 24 * 3600 * 1000

/** The state of the server and its checks, for administrators. */
export function ServerPage() {
  const { data: status } = useSuspenseQuery(statusQuery)
  const { data: checks } = useSuspenseQuery(checksQuery)
  const { data: servers } = useSuspenseQuery(serversQuery)
  const { disk, chunks, lastBackup, masterKey } = status
  return (
    <Page title="System">
      <SystemParts />
      <Section
        title="Backup"
        lead="A backup has the database, the videos’ files and their keys. Keep the recovery phrase elsewhere: without it no backup can be read."
      >
        <FactList facts={[['Last good backup', <BackupAge key="age" lastBackup={lastBackup} />]]} />
        <CodeBlock name="Every night, on the server" code="reelgate backup /mnt/backup/reelgate" />
      </Section>
      <Section
        title="Master key"
        lead="It opens the keys of all videos. Rotate it when someone may have seen it: the server runs meanwhile, videos are not encoded again, and there is a new recovery phrase to keep."
      >
        <FactList
          facts={[
            ['Rotation', <Rotation key="rotation" masterKey={masterKey} />],
            ['Where it comes from', <code key="place">{masterKey.place}</code>],
          ]}
        />
        <CodeBlock name="On the server" code="reelgate key rotate-master" />
      </Section>
      <Files files={status.files} />
      <Section title="Checks" lead="The same as “reelgate doctor” on the server.">
        <DataTable label="Checks" csv={csvUrl('system/checks')} columns={COLUMNS} rows={checks} keyOf={({ check }) => check} />
      </Section>
      {servers.length > 0 && <Servers servers={servers} />}
      <Workers />
      <Section title="Server">
        <FactList
          facts={[
            ['Reelgate', status.version],
            ['Node', status.node],
            ['ffmpeg', status.ffmpeg],
            ['Sandbox for uploads', status.sandbox ? 'On' : 'Off'],
            ['Started', <Ago key="started" at={status.startedAt} />],
            ['Data folder', status.dataFolder],
            ['Database', status.database],
            ['Files of videos', status.files.place],
            ['Disk', `${formatBytes(disk.freeBytes)} of ${formatBytes(disk.sizeBytes)} free`],
            [
              'Encoders',
              `${formatCount(status.encoders)} at a time; chunks: ${formatCount(chunks.running)} running, ${formatCount(chunks.pending)} waiting`,
            ],
            ['Webhook deliveries that wait', formatCount(status.deliveries)],
            ['Accounts', formatCount(status.accounts)],
          ]}
        />
      </Section>
    </Page>
  )
}

/** Those that share the database. */
function Servers({ servers }: { servers: Server[] }) {
  const drain = useChange({
    call: ({ id, state }: Server) =>
      callApi<unknown>('PUT', `system/servers/${id}`, { body: { drained: state === 'drained' ? 0 : 1 } }),
    announced: 'The server has been changed.',
    refreshes: [serversQuery.queryKey],
  })
  const actions: Column<Server> = {
    name: 'Actions',
    kind: 'actions',
    cell: (server) => (
      <Button
        variant="default"
        size="xs"
        aria-label={`${server.state === 'drained' ? 'Resume' : 'Drain'} ${server.name}`}
        onClick={() => drain.mutate(server)}
      >
        {server.state === 'drained' ? 'Resume' : 'Drain'}
      </Button>
    ),
  }
  return (
    <Section title="Servers" lead="They share one database. A drained one answers, but load balancers send it nothing more.">
      <DataTable
        label="Servers"
        csv={csvUrl('system/servers')}
        columns={[...SERVER_COLUMNS, actions]}
        rows={servers}
        keyOf={({ id }) => id}
      />
      {drain.error && <FailureNotice error={drain.error} />}
    </Section>
  )
}

/** Where files are is in the list of facts, too; a move is what an administrator waits for. */
function Files({ files: { place, move } }: Pick<SystemStatusBody, 'files'>) {
  if (!move) return null
  const { to, movedBytes, totalBytes, damagedCount, waitsFor } = move
  return (
    <Section
      title="Files are being moved"
      lead="Videos are uploaded, encoded and played meanwhile. The old place keeps what is copied."
    >
      <Progress value={(100 * movedBytes) / Math.max(1, totalBytes)} size={8} aria-label="Files moved" />
      <FactList
        facts={[
          ['Copied', `${formatBytes(movedBytes)} of ${formatBytes(totalBytes)}`],
          ['From', place],
          ['To', to],
          ...(waitsFor === '' ? [] : [['Waits for', waitsFor] as [string, string]]),
          ...(damagedCount === 0 ? [] : [['Damaged, not copied', formatCount(damagedCount)] as [string, string]]),
        ]}
      />
      <CodeBlock
        name="On the server, for the names of damaged files and what to remove afterwards"
        code="reelgate migrate --storage ADDRESS"
      />
    </Section>
  )
}

const SERVER_WORDS = { serves: 'Serves', starts: 'Starts', stops: 'Stops', drained: 'Drained', silent: 'Silent' } as const
const SERVER_COLORS = { serves: 'ok', starts: 'warn', stops: 'warn', drained: 'warn', silent: 'stop' } as const

const SERVER_COLUMNS: Column<Server>[] = [
  { name: 'Server', kind: 'title', cell: ({ name }) => name },
  { name: 'State', cell: ({ state }) => <StateWord color={SERVER_COLORS[state]}>{SERVER_WORDS[state]}</StateWord> },
  { name: 'Version', cell: ({ version }) => version },
  { name: 'Started', cell: ({ startedAt }) => <Ago at={startedAt} /> },
  { name: 'Viewers now', cell: ({ sessions }) => formatCount(sessions) },
  { name: 'Load', cell: ({ load }) => load.toFixed(1) },
]

function Rotation({ masterKey: { isBeingRotated, rotatedAt } }: Pick<SystemStatusBody, 'masterKey'>) {
  if (isBeingRotated) return <StateWord color="warn">Not finished: the server continues it. Keep both keys until then.</StateWord>
  if (rotatedAt === null) return 'Not in the last year'
  return (
    <span>
      Finished <Ago at={rotatedAt} />
    </span>
  )
}

function BackupAge({ lastBackup }: { lastBackup: { name: string; at: string } | null }) {
  if (lastBackup === null)
    return <StateWord color="stop">None yet: on the server, run “reelgate backup FOLDER”, best every night</StateWord>
  const isOld = Date.now() - Date.parse(lastBackup.at) > OLD_BACKUP_MS
  return (
    <StateWord color={isOld ? 'warn' : 'ok'}>
      <span>
        <Ago at={lastBackup.at} />, {lastBackup.name}
        {isOld && ': what was added since then would be lost with the disk'}
      </span>
    </StateWord>
  )
}

const COLORS = { ok: 'ok', warning: 'warn', trouble: 'stop' } as const
const WORDS = { ok: 'Fine', warning: 'Warning', trouble: 'Trouble' } as const

const COLUMNS: Column<Check>[] = [
  { name: 'Check', kind: 'title', cell: ({ check }) => check },
  { name: 'State', cell: ({ state }) => <StateWord color={COLORS[state]}>{WORDS[state]}</StateWord> },
  { name: 'What was found', cell: ({ says }) => says },
]
