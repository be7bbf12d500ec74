import { PartLinks } from '../ui/part-links.tsx'

/** The parts of the section Viewers. */
export function ViewerParts() {
  return (
    <PartLinks
      label="Viewers"
      parts={[
        { label: 'Watching now', to: '/viewers' },
        { label: 'Who watched', to: '/viewers/watched' },
        { label: 'Refused', to: '/viewers/refused' },
        { label: 'Alerts', to: '/alerts' },
      ]}
    />
  )
}
