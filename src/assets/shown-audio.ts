import type { AudioSettings } from '../catalogue/audio-settings-store.ts'
import { audioTracksOf, type Plan } from '../encode/plan.ts'
import { languageLabel } from './language-label.ts'

/** An audio track as viewers choose it. `id`: of its rendition. `label`: unlike those of the others. */
export type ShownAudioTrack = { id: number; label: string; language: string | undefined; isDefault: boolean }

/**
 * A video's audio tracks, as the file and its owner have them. An only one without a name is just the sound.
 * @param settings of the file that the plan is made from
 */
export function showAudioTracks(plan: Plan, settings: readonly AudioSettings[] = []): ShownAudioTrack[] {
  const tracks = audioTracksOf(plan)
  const labels = new Set<string>()
  const defaultId = settings.find(({ isDefault }) => isDefault)?.id ?? plan.audioTrack?.renditionId
  return tracks.map((track, index) => {
    const { renditionId: id } = track
    const set = settings.find((other) => other.id === id)
    const { name = track.name, language = track.language } = set ?? {}
    const unnamed = tracks.length === 1 ? 'sound' : `Track ${index + 1}`
    const label = distinguish(name ?? (language === undefined ? unnamed : languageLabel(language)), labels)
    labels.add(label)
    return { id, label, language, isDefault: id === defaultId }
  })
}

function distinguish(label: string, taken: ReadonlySet<string>): string {
  let distinct = label
  for (let number = 2; taken.has(distinct); number++) distinct = `${label} ${number}`
  return distinct
}
