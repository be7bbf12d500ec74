/** What a viewer watched in some days. */
export type WatchedDays = { userId: string; videos: number; watchedS: number; lastDate: string }

/** Adds up the lines of the API's CSV (date, userId, video, watchedS) by viewer. */
export function summarizeDays(csv: string): WatchedDays[] {
  const viewers = new Map<string, WatchedDays & { ids: Set<string> }>()
  for (const line of csv.trim().split(/\r?\n/).slice(1)) {
    const [date = '', userId = '', video = '', watchedS = '0'] = line.split(',')
    const viewer = viewers.get(userId) ?? { userId, videos: 0, watchedS: 0, lastDate: date, ids: new Set() }
    viewer.ids.add(video)
    viewers.set(userId, {
      ...viewer,
      videos: viewer.ids.size,
      watchedS: viewer.watchedS + Number(watchedS),
      lastDate: date, // they are in the order of days
    })
  }
  return [...viewers.values()].map(({ ids: _, ...viewer }) => viewer).toSorted((a, b) => b.watchedS - a.watchedS)
}
