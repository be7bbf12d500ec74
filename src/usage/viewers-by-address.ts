/**
 * Who watches what from where. Segments have one address for all viewers, so that caches can keep them; only the signed requests of a
 * playback session, which come from the same address at the same time, show whose they are.
 */
type ViewersByAddress = {
  /** A session's label, '' where it has none, was seen at an address. */
  note(videoId: string, address: string, label: string): void
  /** Every label that watches the video from there; '' alone where none is known. */
  viewerLabels(videoId: string, address: string): readonly string[]
  /** Forgets who has not been seen for a minute. */
  forgetInactive(): void
}

/** A player sends a beat every six seconds. */
const GONE_AFTER_MS = 60_000
const NO_LABEL: readonly string[] = ['']

export function createViewersByAddress(nowMs: () => number = () => performance.now()): ViewersByAddress {
  /** By video and address: labels, with when each was seen last. */
  const labelsByAddress = new Map<string, Map<string, number>>()

  function forgetInactive(): void {
    const goneBeforeMs = nowMs() - GONE_AFTER_MS
    for (const [name, labels] of labelsByAddress) {
      for (const [label, seenAtMs] of labels) if (seenAtMs < goneBeforeMs) labels.delete(label)
      if (labels.size === 0) labelsByAddress.delete(name)
    }
  }

  return {
    note(videoId, address, label) {
      const name = `${videoId} ${address}`
      const labels = labelsByAddress.get(name) ?? new Map<string, number>()
      labels.set(label, nowMs())
      labelsByAddress.set(name, labels)
    },
    viewerLabels(videoId, address) {
      const labels = labelsByAddress.get(`${videoId} ${address}`)
      return labels ? [...labels.keys()] : NO_LABEL
    },
    forgetInactive,
  }
}
