// The key window of a segment: the one that contains its first sample, by time, in integers (playback-protocol.md, section 5).

/** Video segments in one key window, about 12 s. */
export const SEGMENTS_PER_WINDOW = 3

type Grid = { rateNum: number; rateDen: number; gopFrames: number }

export function windowOfVideoSegment(segment: number): number {
  return Math.floor(segment / SEGMENTS_PER_WINDOW)
}

/** An audio segment begins at sample `segment · 188 · 1024` of 48 000 a second. */
export function windowOfAudioSegment(segment: number, grid: Grid): number {
  const samples = BigInt(segment) * 188n * 1024n
  const perWindow = 48_000n * BigInt(SEGMENTS_PER_WINDOW) * BigInt(grid.gopFrames) * BigInt(grid.rateDen)
  return Number((samples * BigInt(grid.rateNum)) / perWindow)
}
