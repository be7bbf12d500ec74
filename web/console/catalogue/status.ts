import type { VideoStatus } from '../../../src/catalogue/status.ts'
import type { VideoBody } from '../../../src/http/api/video-body.ts'
import type { StateFilter } from './search.ts'

type Look = { label: string; color: 'ok' | 'warn' | 'stop' | 'lamp' | 'gray' }

/** What an owner reads for each state of a video. */
const LOOKS: Readonly<Record<VideoStatus, Look>> = {
  'PRE-Upload': { label: 'Waiting for its file', color: 'gray' },
  Queued: { label: 'Queued', color: 'lamp' },
  Processing: { label: 'Processing', color: 'lamp' },
  ready: { label: 'Ready', color: 'ok' },
  'Not a media file': { label: 'Not a video', color: 'stop' },
  'Encoding error': { label: 'Failed', color: 'stop' },
}

type Replacement = VideoBody['replacement']

export function lookOf(status: string, replacement?: Replacement): Look {
  if (replacement) {
    const [what, failed] = replacement.kind === 'trim' ? ['being trimmed', 'trim failed'] : ['being replaced', 'new file failed']
    return replacement.state === 'failed'
      ? { label: `Ready, ${failed}`, color: 'stop' }
      : { label: `Ready, ${what}`, color: 'lamp' }
  }
  return Object.entries(LOOKS).find(([known]) => known === status)?.[1] ?? { label: status, color: 'gray' }
}

/** The states behind each filter of the library, and its name. */
export const STATES: Readonly<Record<StateFilter, { label: string; statuses: readonly VideoStatus[] }>> = {
  ready: { label: 'Ready', statuses: ['ready'] },
  processing: { label: 'Processing', statuses: ['Queued', 'Processing'] },
  failed: { label: 'Failed', statuses: ['Not a media file', 'Encoding error'] },
  waiting: { label: 'Waiting for a file', statuses: ['PRE-Upload'] },
}

/** Whether the server works on it, so that what is shown changes by itself. */
export function isUnderWay(status: string, replacement?: Replacement): boolean {
  return status === 'Queued' || status === 'Processing' || (replacement !== undefined && replacement.state !== 'failed')
}
