import { useMay } from '../sign-in/queries.ts'
import { PartLinks } from '../ui/part-links.tsx'

/** The parts of the section Develop. */
export function DevelopParts() {
  const mayEdit = useMay('editor')
  return (
    <PartLinks
      label="Develop"
      parts={[
        { label: 'Code for your site', to: '/develop/code' },
        { label: 'Defaults of links', to: '/develop/defaults' },
        ...(mayEdit ? [{ label: 'API keys', to: '/develop/keys' } as const] : []),
        { label: 'Webhooks', to: '/develop/webhooks' },
        { label: 'Learning platforms', to: '/develop/platforms' },
        ...(mayEdit ? [{ label: 'Limits', to: '/develop/limits' } as const] : []),
      ]}
    />
  )
}
