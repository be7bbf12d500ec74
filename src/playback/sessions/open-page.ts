import { PlaybackRefusal } from '../refusal.ts'
import type { LiveSession } from './live-session.ts'
import { acceptSeq, newReplayWindow, type Proof } from './proof.ts'
import type { SessionDeps } from './session-deps.ts'
import { assertNotEnded } from './session-end.ts'
import { setPages } from './session-store.ts'

const MAX_PAGES = 32

/**
 * Makes the proof's page the newest of the session, durable before it resolves. A known page keeps its place, so that a replayed call
 * changes nothing.
 * @throws PlaybackRefusal `page-replaced`, `proof-replayed`, or `session-ended`, also after too many pages
 */
export async function openPage(deps: Pick<SessionDeps, 'write' | 'nowS'>, session: LiveSession, proof: Proof): Promise<void> {
  await assertNotEnded(deps, session) // first: a new page clears `leftAtS`, which must not revive a session
  const before = { pages: session.pages, seqs: session.seqs }
  // Before the write, so that of two concurrent pages one is the newest; undone if it does not become durable.
  if (!addPage(session, proof)) return
  try {
    const version = await deps.write((tx) => setPages(tx, session.row.id, session.pages))
    session.row = { ...session.row, leftAtS: null, version: version ?? session.row.version }
  } catch (error) {
    Object.assign(session, before)
    throw error
  }
  session.leftAtS = null
}

/** Makes the proof's page the newest of a session that has not ended. @returns whether it is a new one @throws PlaybackRefusal */
export function addPage(session: LiveSession, proof: Proof): boolean {
  const { pages } = session
  if (pages.at(-1) === proof.pageId) {
    if (!acceptSeq(session.seqs, proof.seq)) throw new PlaybackRefusal('proof-replayed')
    return false
  }
  if (pages.includes(proof.pageId)) throw new PlaybackRefusal('page-replaced')
  if (pages.length >= MAX_PAGES) throw new PlaybackRefusal('session-ended', { why: 'time' }) // a reload of the owner's page helps
  Object.assign(session, { pages: [...pages, proof.pageId], seqs: newReplayWindow() })
  acceptSeq(session.seqs, proof.seq)
  return true
}
