import { useMay, useSignedIn } from '../sign-in/queries.ts'
import { PartLinks } from '../ui/part-links.tsx'

/** The parts of the section System that the person may see. */
export function SystemParts() {
  const mayEdit = useMay('editor')
  const { administrator } = useSignedIn().user
  return (
    <PartLinks
      label="System"
      parts={[
        { label: 'You', to: '/system/you' },
        ...(mayEdit ? [{ label: 'People', to: '/system/people' } as const] : []),
        { label: 'Settings', to: '/system/settings' },
        { label: 'Queue', to: '/system/queue' },
        ...(mayEdit ? [{ label: 'Audit log', to: '/system/audit-log' } as const] : []),
        ...(administrator
          ? [{ label: 'Server', to: '/system/server' } as const, { label: 'Accounts', to: '/system/accounts' } as const]
          : []),
      ]}
    />
  )
}
