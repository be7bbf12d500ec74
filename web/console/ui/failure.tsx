import { Button, Title } from '@mantine/core'
import { Link, useRouter } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { ApiFailure } from '../api.ts'
import styles from './failure.module.css'
import { ReloadIcon, WarningIcon } from './icons.tsx'
import { isMissingScript, ReloadForScript } from './missing-script.tsx'

/** What failed, where it happened: the sentence of the API, and a way to try again where that may help. */
export function FailureNotice({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  return (
    <Notice text={sentenceOf(error)}>
      {onRetry && (
        <Button variant="default" size="xs" leftSection={<ReloadIcon size={14} />} onClick={onRetry}>
          Try again
        </Button>
      )}
    </Notice>
  )
}

/** A sentence about something that is wrong, and what can be done about it. */
export function Notice({ text, isWarning, children }: { text: string; isWarning?: boolean; children?: ReactNode }) {
  return (
    <div role="alert" className={styles.notice} data-warning={isWarning}>
      <WarningIcon size={18} />
      <p>{text}</p>
      {children}
    </div>
  )
}

/** Instead of a page whose data could not be read. */
export function FailurePage({ error }: { error: unknown }) {
  const router = useRouter()
  const isMissing = error instanceof ApiFailure && error.status === 404
  if (isMissing) return <NotFoundPage />
  if (isMissingScript(error)) return <ReloadForScript />
  return (
    <div className={styles.page}>
      <Title order={1}>This page could not be shown</Title>
      <FailureNotice error={error} onRetry={() => router.invalidate()} />
    </div>
  )
}

export function NotFoundPage() {
  return (
    <div className={styles.page}>
      <Title order={1}>There is nothing at this address</Title>
      <p>It may have been deleted, or belong to another account.</p>
      <Button component={Link} to="/videos" variant="default">
        All videos
      </Button>
    </div>
  )
}

/** An error of the program itself is logged by the browser; its text would not help here. */
function sentenceOf(error: unknown): string {
  if (error instanceof ApiFailure) return error.message
  return 'This page has an error. Reload it; if that does not help, report what you did and the messages in your browser’s console.'
}
