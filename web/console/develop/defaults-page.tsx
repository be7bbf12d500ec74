import { useQueryClient, useSuspenseQuery } from '@tanstack/react-query'
import { OtpDefaultsForm } from '../protection/protection-form.tsx'
import { accountDefaultsQuery } from '../protection/queries.ts'
import { useAnnounce } from '../ui/announcements.tsx'
import { Page } from '../ui/page.tsx'
import { Section } from '../ui/section.tsx'
import { DevelopParts } from './develop-parts.tsx'
import { SentencesSection } from './sentences-section.tsx'

/** What every link to a video of the account has, unless the video or the link sets its own. */
export function DefaultsPage() {
  const queries = useQueryClient()
  const announce = useAnnounce()
  const { data: options } = useSuspenseQuery(accountDefaultsQuery)
  const onSaved = async (needs: string) => {
    announce(`The defaults have been saved. ${needs}`.trim())
    await queries.invalidateQueries({ queryKey: accountDefaultsQuery.queryKey })
  }
  return (
    <Page title="Develop">
      <DevelopParts />
      <Section
        title="Defaults of links"
        lead="For every link that is issued from now on, to any video. The Protection of a video goes before them, and what your site asks for goes before both."
      >
        <OtpDefaultsForm path="otp-defaults" options={options} onSaved={onSaved} />
      </Section>
      <SentencesSection />
    </Page>
  )
}
