import { useQueryClient, useSuspenseQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { VideoBody } from '../../../src/http/api/video-body.ts'
import { OtpDefaultsForm } from '../protection/protection-form.tsx'
import { useAnnounce } from '../ui/announcements.tsx'
import { Section } from '../ui/section.tsx'
import { otpDefaultsQuery, previewQuery } from './queries.ts'

/** Who may watch the video, and what is shown over it: the defaults of its OTPs. */
export function ProtectionTab({ video }: { video: VideoBody }) {
  const queries = useQueryClient()
  const announce = useAnnounce()
  const { data: options } = useSuspenseQuery(otpDefaultsQuery(video.id))
  const onSaved = async (needs: string) => {
    announce(`The protection has been saved. The player above shows it. ${needs}`.trim())
    await queries.invalidateQueries({ queryKey: ['videos'] })
    await queries.resetQueries({ queryKey: previewQuery(video.id).queryKey })
  }
  return (
    <Section
      title="Protection"
      lead={
        <>
          For every link to this video that is issued from now on. Your site can set them for one viewer, and what is empty here
          has the <Link to="/develop/defaults">default of the account</Link>.
        </>
      }
    >
      <OtpDefaultsForm path={`videos/${video.id}/otp-defaults`} options={options} video={video} onSaved={onSaved} />
    </Section>
  )
}
