import { randomUUID } from 'node:crypto'
import type { Reelgate } from '../in-process.ts'
import type { Viewer } from '../viewer.ts'

/** Each time as another person. */
export async function play(reelgate: Reelgate): Promise<Viewer> {
  const viewer = reelgate.newViewer()
  await viewer.redeem(await reelgate.owner.issueOtp(reelgate.videoId, { userId: randomUUID() }))
  return viewer
}
