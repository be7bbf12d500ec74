import { Tabs } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { CodeBlock } from '../app/code-block.tsx'
import { FailureNotice } from '../app/failure.tsx'
import { useSignedIn } from '../sign-in/queries.ts'
import { testLinkQuery } from './queries.ts'
import { siteCodes } from './site-code.ts'
import styles from './site-code-tabs.module.css'

/** The code that puts the video on the owner's site, in the language that they choose. */
export function SiteCodeTabs({ videoId }: { videoId: string }) {
  const [chosen, setChosen] = useState('html')
  const { data: testQuery, error, refetch } = useQuery({ ...testLinkQuery(videoId), enabled: chosen === 'html' })
  const { publicUrl } = useSignedIn()
  const codes = siteCodes({ serverUrl: publicUrl, videoId, testQuery })
  return (
    <Tabs value={chosen} onChange={(next) => setChosen(next ?? 'html')} keepMounted={false}>
      <Tabs.List aria-label="Language" className={styles.list}>
        {codes.map(({ id, label }) => (
          <Tabs.Tab key={id} value={id}>
            {label}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {codes.map(({ id, label, use, code }) => (
        <Tabs.Panel key={id} value={id} className={styles.panel}>
          <p>{use}</p>
          {id === 'html' && error ? (
            <FailureNotice error={error} onRetry={() => refetch()} />
          ) : (
            <CodeBlock code={code} name={`${label} code`} />
          )}
          {id !== 'html' && <SecretHint />}
        </Tabs.Panel>
      ))}
    </Tabs>
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
