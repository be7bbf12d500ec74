import { useState } from 'react'
import type { VideoBody } from '../../../src/http/api/video-body.ts'

/** As many as one call of the API changes. */
export const MAX_SELECTED = 1_000

/** What can be done with all that are selected. */
export type BulkAction = 'tag' | 'move' | 'protect' | 'delete'

export type BulkDialogProps = { videos: readonly VideoBody[]; onClose(): void; onDone(sentence: string): Promise<void> }

export type Selection = {
  size: number
  videos(): VideoBody[]
  has(id: string): boolean
  toggle(video: VideoBody, isSelected?: boolean): void
  add(videos: readonly VideoBody[]): void
  clear(): void
}

/**
 * The videos that a bulk action is for. They stay selected when a search or filter hides them.
 * @param isAllowed false for a person who may change nothing: then nothing is ever selected
 */
export function useSelection(isAllowed: boolean): Selection {
  const [selected, setSelected] = useState<ReadonlyMap<string, VideoBody>>(new Map())
  const change = (next: (before: ReadonlyMap<string, VideoBody>) => ReadonlyMap<string, VideoBody>) =>
    isAllowed && setSelected(next)
  return {
    size: selected.size,
    videos: () => [...selected.values()],
    has: (id) => selected.has(id),
    toggle: (video, isSelected) =>
      change((before) => {
        const after = new Map(before)
        if (isSelected ?? !before.has(video.id)) after.set(video.id, video)
        else after.delete(video.id)
        return after.size > MAX_SELECTED ? before : after
      }),
    add: (videos) =>
      change((before) => {
        const room = MAX_SELECTED - before.size
        const added = videos.filter(({ id }) => !before.has(id)).slice(0, room)
        return new Map([...before, ...added.map((video) => [video.id, video] as const)])
      }),
    clear: () => setSelected(new Map()),
  }
}
