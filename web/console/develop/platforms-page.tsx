import { Button } from '@mantine/core'
import { useSuspenseQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { csvUrl } from '../api.ts'
import { useMay } from '../sign-in/queries.ts'
import { Ago } from '../ui/ago.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { PlusIcon } from '../ui/icons.tsx'
import { Page } from '../ui/page.tsx'
import { RowButton } from '../ui/row-button.tsx'
import { SecretDialog } from '../ui/secret-dialog.tsx'
import { Section } from '../ui/section.tsx'
import { StateWord } from '../ui/state-word.tsx'
import { CoursesDialog } from './courses-dialog.tsx'
import { DevelopParts } from './develop-parts.tsx'
import { ConnectDialog, PlatformDialog, RemovePlatformDialog } from './platform-dialogs.tsx'
import { type Platform, platformsQuery } from './queries.ts'

/** A link that was made here, and the platforms that were there before it. */
type Link = { url: string; known: ReadonlySet<string> }

const LOOK_EVERY_MS = 3_000

/** The learning platforms whose courses play videos. */
export function PlatformsPage() {
  const [link, setLink] = useState<Link>()
  const { data: platforms } = useSuspenseQuery({ ...platformsQuery, refetchInterval: link ? LOOK_EVERY_MS : false })
  const registered = link && platforms.find(({ id }) => !link.known.has(id))
  const mayEdit = useMay('editor')
  const [changed, setChanged] = useState<Platform>()
  const [removed, setRemoved] = useState<Platform>()
  const [taught, setTaught] = useState<Platform>()
  const [isConnecting, setConnecting] = useState(false)
  const actions: Column<Platform> = {
    name: 'Actions',
    kind: 'actions',
    cell: (platform) => (
      <>
        <RowButton
          aria-label={platform.confirmed ? `Change ${platform.name}` : `Look at ${platform.name} and confirm it`}
          onClick={() => setChanged(platform)}
        >
          {platform.confirmed ? 'Change' : 'Confirm'}
        </RowButton>
        {platform.confirmed && (
          <RowButton aria-label={`Courses of ${platform.name}`} onClick={() => setTaught(platform)}>
            Courses
          </RowButton>
        )}
        <RowButton aria-label={`Remove ${platform.name}`} onClick={() => setRemoved(platform)}>
          Remove
        </RowButton>
      </>
    ),
  }
  return (
    <Page title="Develop">
      <DevelopParts />
      <Section
        title="Learning platforms"
        lead="Moodle, Canvas and others play your videos in their courses, and get grades for them (LTI 1.3)."
        actions={
          mayEdit && (
            <Button leftSection={<PlusIcon size={16} />} onClick={() => setConnecting(true)}>
              Connect a platform
            </Button>
          )
        }
      >
        <DataTable
          label="Learning platforms"
          csv={csvUrl('lti/platforms')}
          columns={mayEdit ? [...COLUMNS, actions] : COLUMNS}
          rows={platforms}
          keyOf={({ id }) => id}
          empty={<p>No platforms. Connect one: you get a link that its administrator opens there.</p>}
        />
      </Section>
      {isConnecting && (
        <ConnectDialog
          onClose={() => setConnecting(false)}
          onMade={({ url }) => {
            setConnecting(false)
            setLink({ url, known: new Set(platforms.map(({ id }) => id)) })
          }}
        />
      )}
      {link && !registered && (
        <SecretDialog title="Connect a platform" name="Registration link" secret={link.url} onClose={() => setLink(undefined)}>
          <p>
            Open it in the platform as an administrator: in Moodle under External tools, in Canvas under Developer keys. It works
            once, within an hour. This page shows the platform then, for you to confirm.
          </p>
        </SecretDialog>
      )}
      {registered && <PlatformDialog platform={registered} onClose={() => setLink(undefined)} />}
      {changed && <PlatformDialog platform={changed} onClose={() => setChanged(undefined)} />}
      {taught && <CoursesDialog platform={taught} onClose={() => setTaught(undefined)} />}
      {removed && <RemovePlatformDialog platform={removed} onClose={() => setRemoved(undefined)} />}
    </Page>
  )
}

const COLUMNS: Column<Platform>[] = [
  { name: 'Name', kind: 'title', cell: ({ name }) => name },
  { name: 'Issuer', cell: ({ issuer }) => issuer },
  {
    name: 'State',
    cell: ({ confirmed }) =>
      confirmed ? <StateWord color="ok">On</StateWord> : <StateWord color="warn">To be confirmed</StateWord>,
  },
  { name: 'Last launch', cell: ({ lastLaunchAt }) => (lastLaunchAt ? <Ago at={lastLaunchAt} /> : 'Never') },
  {
    name: 'Last error',
    cell: ({ lastError, lastErrorAt }) =>
      lastErrorAt ? (
        <span>
          {lastError} <Ago at={lastErrorAt} />
        </span>
      ) : (
        'None'
      ),
  },
]
