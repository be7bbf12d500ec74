/** The tabs of a video's page after the first. */
export const VIDEO_TABS = ['audio', 'captions', 'chapters', 'trim', 'protection', 'files', 'statistics', 'history'] as const
export type VideoTab = (typeof VIDEO_TABS)[number]
