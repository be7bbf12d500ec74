import type { Signals, Work } from '../signals/signals.ts'
import type { Dispatcher } from './dispatcher.ts'

/** Has a dispatcher claim jobs when work of its kind is queued, and end the jobs of videos whose work is cancelled. */
export function followSignals(signals: Pick<Signals, 'on'>, kind: Work, { wake, stopJobs }: Dispatcher): void {
  signals.on('work-queued', (queued) => queued === kind && wake())
  signals.on('work-cancelled', ({ videoIds, work = kind }) => work === kind && Promise.all(videoIds.map(stopJobs)))
}
