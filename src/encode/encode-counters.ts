/** What was encoded since the start of the server. */
export type EncodeCounters = {
  /** Published segments, of all renditions. */
  segments: number
  failures: number
}
