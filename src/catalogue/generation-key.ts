/** Names a generation: one complete encode of a video. */
export type GenerationKey = { videoId: string; generation: number }
