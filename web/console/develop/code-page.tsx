import { Button } from '@mantine/core'
import { useSuspenseQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { videosPageQuery } from '../catalogue/queries.ts'
import { useMay } from '../sign-in/queries.ts'
import { BookIcon } from '../ui/icons.tsx'
import { Page } from '../ui/page.tsx'
import { Section } from '../ui/section.tsx'
import { installationUrl } from '../urls.ts'
import { EmbedBuilder } from '../video/embed-builder.tsx'
import { DevelopParts } from './develop-parts.tsx'

/** How a site shows a video, with the newest one as the example. */
export function CodePage() {
  const { data } = useSuspenseQuery(videosPageQuery({ state: 'ready' }, 1))
  const [newest] = data.rows
  const mayUpload = useMay('uploader')
  return (
    <Page title="Develop">
      <DevelopParts />
      <Section
        title="Code for your site"
        lead={
          newest ? (
            <>
              Your server asks for a one-time password for each viewer, and puts the player into the page. The example is your
              newest video,{' '}
              <Link to="/videos/$videoId" params={{ videoId: newest.id }}>
                {newest.title}
              </Link>
              ; each video’s page has its own code.
            </>
          ) : (
            'Add a video first: the code is made for it.'
          )
        }
      >
        {newest ? (
          <EmbedBuilder videoId={newest.id} />
        ) : (
          mayUpload && (
            <div>
              <Button component={Link} to="/welcome">
                Add a video
              </Button>
            </div>
          )
        )}
      </Section>
      <Section title="API reference" lead="Every operation with its parameters, answers and an example that works as copied.">
        <div>
          <Button
            component="a"
            href={installationUrl('docs/api').href}
            target="_blank"
            variant="default"
            leftSection={<BookIcon size={16} />}
          >
            Open the API reference
          </Button>
        </div>
      </Section>
    </Page>
  )
}
