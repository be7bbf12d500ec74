import { useNavigate } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { useMay, useSignedIn } from '../sign-in/queries.ts'
import { CodeBlock } from '../ui/code-block.tsx'
import { DropZone } from '../upload/drop-zone.tsx'
import { useUploadList } from '../upload/upload-provider.tsx'
import styles from './empty-library.module.css'

/** What an account without videos begins with; an upload that begins here leads on to its first steps. */
export function EmptyLibrary() {
  const navigate = useNavigate()
  const uploads = useUploadList()
  const [earlier] = useState(() => new Set(uploads.map(({ id }) => id)))
  const hasBegun = uploads.some(({ id }) => !earlier.has(id))
  useEffect(() => {
    if (hasBegun) void navigate({ to: '/welcome', replace: true })
  }, [hasBegun, navigate])
  const { publicUrl } = useSignedIn()
  if (!useMay('uploader')) return <p>There are no videos yet.</p>
  return (
    <div className={styles.empty}>
      <p className={styles.lead}>
        Your library is empty. Add a video: it is encoded for every screen, encrypted, and plays only to the people whom your site
        lets watch it.
      </p>
      <DropZone />
      <p>From your own server, the same is one call:</p>
      <CodeBlock name="curl" code={importByCurl(publicUrl)} />
    </div>
  )
}

function importByCurl(serverUrl: string): string {
  return `curl -X PUT '${serverUrl}/api/videos/importUrl' \\
  -H "Authorization: Apisecret $REELGATE_SECRET" \\
  -H 'Content-Type: application/json' \\
  -d '{"url": "https://example.org/video.mp4"}'
`
}
