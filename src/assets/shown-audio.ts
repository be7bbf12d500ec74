import { audioTracksOf, type Plan } from '../encode/plan.ts'
import { languageLabel } from './language-label.ts'

/** An audio track as viewers choose it. `id`: of its rendition. `label`: unlike those of the others. */
export type ShownAudioTrack = { id: number; label: string; language: string | undefined; isDefault: boolean }

/** A video's audio tracks, the default one first. An only one without a name is just the sound. */
export function showAudioTracks(plan: Plan): ShownAudioTrack[] {
  const tracks = audioTracksOf(plan)
  const labels = new Set<string>()
  return tracks.map(({ renditionId: id, name, language }, index) => {
    const unnamed = tracks.length === 1 ? 'sound' : `Track ${index + 1}`
    const label = distinguish(name ?? (language === undefined ? unnamed : languageLabel(language)), labels)
    labels.add(label)
    return { id, label, language, isDefault: index === 0 }
  })
}

function distinguish(label: string, taken: ReadonlySet<string>): string {
  let distinct = label
  for (let number = 2; taken.has(distinct); number++) distinct = `${label} ${number}`
  return distinct
}
