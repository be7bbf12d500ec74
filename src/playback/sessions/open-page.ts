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
  if (session.pages.at(-1) === proof.pageId) {
    if (!acceptSeq(session.seqs, proof.seq)) throw new PlaybackRefusal('proof-replayed')
    return
  }
  if (session.pages.includes(proof.pageId)) throw new PlaybackRefusal('page-replaced')
  if (session.pages.length >= MAX_PAGES) throw new PlaybackRefusal('session-ended', { why: 'time' }) // a reload of the owner's page helps
  const before = { pages: session.pages, seqs: session.seqs }
  const pages = [...session.pages, proof.pageId]
  // Set before the write, so that of two concurrent pages one is the newest; undone if it does not become durable.
  Object.assign(session, { pages, seqs: newReplayWindow() })
  acceptSeq(session.seqs, proof.seq)
  try {
    const version = await deps.write((tx) => setPages(tx, session.row.id, pages))
    session.row = { ...session.row, leftAtS: null, version: version ?? session.row.version }
  } catch (error) {
    Object.assign(session, before)
    throw error
  }
  session.leftAtS = null
}
