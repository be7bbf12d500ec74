import type { Channel } from '../db/database.ts'
import type { Write } from '../db/write.ts'
import { joinChannel } from './other-servers.ts'

/** Queued work that a dispatcher runs. */
export type Work =
  | 'encode'
  | 'import'
  | 'mp4'
  | 'captions'
  | 'transcription'
  | 'storyboard'
  | 'dub'
  | 'webhook'
  | 'score'
  | 'removal'

type SegmentKey = { videoId: string; generation: number; renditionId: number; number: number }

/** What parts of the program report to each other after a commit. */
export type SignalData = {
  /** What a request of an owner or a person is answered with before it reads more: keys, sign-ins, accounts, the numbers of their changes. */
  'account-changed': undefined
  'work-queued': Work
  /** The listeners' promises resolve when no job of these videos is running any more. `work` undefined: of any kind. */
  'work-cancelled': { videoIds: readonly string[]; work?: Work }
  'segment-published': SegmentKey
  /** The bytes of a segment on the disk are not those that were published. */
  'segment-damaged': SegmentKey
  /** A video has got an audio track, or lost one. */
  'audio-changed': { videoId: string }
  /**
   * All sessions of videos or of an account, or some; or since then perhaps some by another process, for reasons that the rows have.
   * `generation`: only those that play it.
   */
  'session-ended':
    | (({ videoIds: readonly string[]; generation?: number } | { accountId: string } | { sessionIds: readonly string[] }) & {
        why: 'taken' | 'stopped' | 'video-deleted' | 'video-replaced' | 'account-disabled'
      })
    | { sinceS: number }
  /** Keys of a video that stays were deleted: the log of the database has them until it is truncated. */
  'keys-destroyed': undefined
  /** The rows of a deleted video are about to be removed, and with them what was not saved yet. */
  'video-removal': undefined
  /** A ban was lifted. `withCounts`: what was counted of its subject is forgotten, too. Undefined: the rows have changed. */
  'bans-changed': { subject: string; withCounts: boolean } | undefined
  /** The database is bound to other master keys than before. */
  'key-ring-changed': undefined
  /** Another server is asked for a resumable upload: a connection that is silent gives it up. */
  'upload-wanted': { uploadId: string }
  /** A server has started or stopped. */
  'servers-changed': undefined
}
export type SignalName = keyof SignalData
/** Which server sent a signal. */
type Origin = 'here' | 'elsewhere'
type Listener<Name extends SignalName> = (data: SignalData[Name], origin: Origin) => unknown
type Listeners = { [Name in SignalName]: Set<Listener<Name>> }

/**
 * Makes the other parts of the program quick: a listener runs before the caller of `send` continues. The rows are the truth: what is
 * sent to another server may be late or lost, so what must not be missed is also read from its row once a second.
 */
export type Signals = {
  /** Call it after the commit. @returns resolves when what the listeners started has ended */
  send<Name extends SignalName>(name: Name, data: SignalData[Name]): Promise<void>
  /** The same on this server alone, of what was found in rows: the others find it there, too. */
  notify<Name extends SignalName>(name: Name, data: SignalData[Name]): Promise<void>
  on<Name extends SignalName>(name: Name, listener: Listener<Name>): () => void
}

/** About the files of one server alone. */
const LOCAL: readonly SignalName[] = ['keys-destroyed']
/** A lost connection to the other servers is noticed within this time. */
const MAX_GAP_S = 60

/** Tables whose rows are in 'account-changed', or whose triggers change such a row. */
const ACCOUNT_TABLES = [
  'account',
  'api_key',
  'console_user',
  'sign_in',
  'video',
  'video_tag',
  'folder',
  'file',
  'source',
  'rendition',
]

/**
 * A commit sends by itself what follows from so many statements that one would be forgotten.
 * @param channel to the other servers, which get the same signals
 */
export function createSignals(write: Pick<Write, 'onCommit'>, channel?: Channel): Signals & { stop(): Promise<void> } {
  const listeners: Listeners = {
    'account-changed': new Set(),
    'work-queued': new Set(),
    'work-cancelled': new Set(),
    'segment-published': new Set(),
    'segment-damaged': new Set(),
    'audio-changed': new Set(),
    'session-ended': new Set(),
    'keys-destroyed': new Set(),
    'video-removal': new Set(),
    'bans-changed': new Set(),
    'key-ring-changed': new Set(),
    'upload-wanted': new Set(),
    'servers-changed': new Set(),
  }

  async function runListeners<Name extends SignalName>(name: Name, data: SignalData[Name], origin: Origin): Promise<void> {
    await Promise.all([...listeners[name]].map((listener) => listener(data, origin)))
  }

  /** What fails is done again when the rows are read. */
  function runQuietly<Name extends SignalName>(name: Name, data: SignalData[Name]): void {
    void runListeners(name, data, 'elsewhere').catch(() => undefined)
  }

  const others =
    channel &&
    joinChannel(channel, {
      received(name, data) {
        if (isSignal(name)) runQuietly(name, data as SignalData[typeof name])
      },
      missed() {
        for (const name of ['account-changed', 'bans-changed', 'key-ring-changed'] as const) runQuietly(name, undefined)
        runQuietly('session-ended', { sinceS: Math.floor(Date.now() / 1000) - MAX_GAP_S })
      },
    })

  /** Another server may be of a newer version, and send what this one does not know. */
  function isSignal(name: string): name is SignalName {
    return name in listeners
  }

  async function send<Name extends SignalName>(name: Name, data: SignalData[Name]): Promise<void> {
    if (!LOCAL.includes(name)) others?.send(name, data)
    await runListeners(name, data, 'here')
  }

  write.onCommit((changed) => {
    if (ACCOUNT_TABLES.some((table) => changed.has(table))) void send('account-changed', undefined)
    if (changed.has('delivery')) void send('work-queued', 'webhook')
    if (changed.has('lti_grade')) void send('work-queued', 'score')
  })
  return {
    send,
    notify: (name, data) => runListeners(name, data, 'here'),
    stop: async () => others?.stop(),
    on(name, listener) {
      listeners[name].add(listener)
      return () => listeners[name].delete(listener)
    },
  }
}
