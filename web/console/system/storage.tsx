import { Progress } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useMay } from '../sign-in/queries.ts'
import { Notice } from '../ui/failure.tsx'
import { WarningIcon } from '../ui/icons.tsx'
import { formatBytes } from '../units.ts'
import { accountQuery } from './queries.ts'
import styles from './storage.module.css'

const NEARLY_USED = 0.9

/** What the account stores of what it may; nothing for an account without a limit. */
function useStorage(): { usedBytes: number; limitBytes: number } | undefined {
  const { data } = useQuery(accountQuery)
  if (!data || data.storageLimitBytes === null) return undefined
  return { usedBytes: data.usage.storedBytes + data.usage.trashedBytes, limitBytes: data.storageLimitBytes }
}

export function StorageMeter() {
  const storage = useStorage()
  if (!storage) return null
  const { usedBytes, limitBytes } = storage
  const isNearlyUsed = usedBytes >= NEARLY_USED * limitBytes
  const words = `${formatBytes(usedBytes)} of ${formatBytes(limitBytes)}`
  return (
    <div className={styles.meter}>
      <Progress
        value={Math.min(100, (100 * usedBytes) / limitBytes)}
        size={8}
        color={isNearlyUsed ? 'stop' : undefined}
        aria-label="Storage used"
      />
      <p>{words}</p>
      {isNearlyUsed && (
        <p className={styles.warning}>
          <WarningIcon size={16} />
          {usedBytes >= limitBytes ? 'Nothing more can be uploaded.' : 'Nearly used up.'} {REMEDY}
        </p>
      )}
    </div>
  )
}

/** Before a file is chosen: that nothing more fits. */
export function FullStorageNotice() {
  return useMay('uploader') ? <FullStorage /> : null
}

function FullStorage() {
  const storage = useStorage()
  if (!storage || storage.usedBytes < storage.limitBytes) return null
  return (
    <Notice
      isWarning
      text={`Nothing more can be uploaded: ${formatBytes(storage.usedBytes)} of ${formatBytes(storage.limitBytes)} are stored. ${REMEDY}`}
    />
  )
}

const REMEDY = 'Delete videos, also from the trash, or ask the administrator of this server for more.'
