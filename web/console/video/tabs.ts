/** The tabs of a video's page after the first. */
export const VIDEO_TABS = ['captions', 'protection', 'files', 'statistics', 'history'] as const
export type VideoTab = (typeof VIDEO_TABS)[number]
