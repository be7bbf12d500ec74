import { Tabs } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { keepPreviousData, useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { useMay, useSignedIn } from '../sign-in/queries.ts'
import { CodeBlock } from '../ui/code-block.tsx'
import { FailureNotice } from '../ui/failure.tsx'
import { PLUGIN_URL } from '../urls.ts'
import { EXAMPLE_USER_ID, type OtpBody, otpBody } from './otp-choices.ts'
import { defaultAnnotateQuery, testOtpQuery } from './queries.ts'
import { type EmbedChoices, siteCodes, USUAL_CHOICES } from './site-code.ts'
import styles from './site-code-tabs.module.css'

/** The code that puts the video on the owner's site, in the language that they choose. */
export function SiteCodeTabs({ videoId, choices = USUAL_CHOICES }: { videoId: string; choices?: EmbedChoices }) {
  const mayIssue = useMay('otpCreator')
  const [chosen, setChosen] = useState(mayIssue ? 'html' : 'php')
  const { data: defaultAnnotate } = useSuspenseQuery(defaultAnnotateQuery(videoId))
  const body = otpBody(choices.otp, defaultAnnotate)
  const { testOtp, isOutdated, error, refetch } = useTestOtp(videoId, body, chosen === 'html')
  const { publicUrl } = useSignedIn()
  const all = siteCodes({ serverUrl: publicUrl, videoId, testOtp, choices, defaultAnnotate })
  const codes = all.filter(({ id }) => id !== 'html' || mayIssue) // it has a link that plays
  const { userId, viewer } = body
  return (
    <Tabs value={chosen} onChange={(next) => setChosen(next ?? chosen)} keepMounted={false}>
      <Tabs.List aria-label="Language" className={styles.list}>
        {codes.map(({ id, label }) => (
          <Tabs.Tab key={id} value={id}>
            {label}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {codes.map(({ id, label, use, code, more }) => (
        <Tabs.Panel key={id} value={id} className={styles.panel}>
          {id === 'wordpress' && <PluginHint serverUrl={publicUrl} />}
          <p>{use}</p>
          {id === 'html' && error ? (
            <FailureNotice error={error} onRetry={() => refetch()} />
          ) : (
            <CodeBlock code={code} name={`${label} code`} isOutdated={id === 'html' && isOutdated} />
          )}
          {more && (
            <>
              <p>{more.use}</p>
              <CodeBlock code={more.code} name={`${label} options`} />
            </>
          )}
          {id !== 'html' && id !== 'wordpress' && <SecretHint />}
          {id !== 'html' && id !== 'wordpress' && (userId ?? viewer) && (
            <p className={styles.hint}>
              {userId && `Replace “${EXAMPLE_USER_ID}” by the id of your viewer in your own database. `}
              {viewer && 'Replace the name and the email address by those of your viewer.'}
            </p>
          )}
        </Tabs.Panel>
      ))}
    </Tabs>
  )
}

const TYPING_PAUSE_MS = 400

/** An OTP with the options that were chosen, for the code in HTML: its markup follows each change, its OTP a pause in typing. */
function useTestOtp(videoId: string, { ttl: _, ...body }: OtpBody, enabled: boolean) {
  const key = JSON.stringify(body)
  const [settledKey] = useDebouncedValue(key, TYPING_PAUSE_MS)
  const options = useMemo(() => JSON.parse(settledKey), [settledKey])
  const { data, error, refetch, isPlaceholderData } = useQuery({
    ...testOtpQuery(videoId, options),
    enabled,
    placeholderData: keepPreviousData,
  })
  return { testOtp: data, isOutdated: isPlaceholderData || settledKey !== key, error, refetch }
}

function PluginHint({ serverUrl }: { serverUrl: string }) {
  return (
    <p>
      <a href={PLUGIN_URL.href} download>
        Download the plug-in
      </a>{' '}
      and upload it in WordPress under Plugins → Add New. In Settings → Reelgate enter <code>{serverUrl}</code> and the secret of
      an <Link to="/develop/keys">API key</Link> that may issue OTPs, read and upload.
    </p>
  )
}

function SecretHint() {
  return (
    <p className={styles.hint}>
      REELGATE_SECRET is an API secret of this account, in the environment of your server: never in a page. The first start has
      printed one, and <Link to="/develop/keys">API keys</Link> makes others.
    </p>
  )
}
