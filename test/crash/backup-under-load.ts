import { spawn } from 'node:child_process'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished } from 'vitest'
import { untilFinished } from '../data-folder.ts'
import { createTusClient } from '../ingest/tus-client.ts'
import { makeLocation } from '../installation-folder.ts'
import { decode, downloadVideo, writeRendition } from '../pipeline/videos.ts'
import type { DatabaseKind } from '../postgres.ts'
import { type Reelgate, runCli, startReelgate, startSharedReelgate } from '../reelgate.ts'
import { readRows } from '../rows.ts'
import { sampleOf } from '../sample.ts'
import { type Chance, newChance, rounds } from '../seeded-random.ts'
import { CLIENTS, type CrashTest, haveSomeReady, newCrashTest, observe, untilBusy } from './crash-harness.ts'
import type { Op } from './history.ts'
import { examine, newMemory } from './inspect-data-folder.ts'
import { judge, type World } from './invariants.ts'

const MAIN = join(import.meta.dirname, '../../bin/main.js')

export const BACKUPS = rounds(1, 30)

/** Backs up the server of eight clients while it, or a backup before, may be killed; each backup is restored and compared with what clients know. */
export async function checkBackupsUnderLoad(database: DatabaseKind): Promise<void> {
  const chance = newChance('backups under load')
  const crashTest = await newCrashTest(await startReelgate({ database }), chance, `backups-${database}`)
  await haveSomeReady(crashTest)
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-backup-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const counts = { killedBackups: 0, killedServers: 0, videos: 0 }
  for (let round = 1; round <= BACKUPS; round++) {
    const calling = crashTest.runClients(CLIENTS)
    await Promise.race([untilBusy(crashTest, chance), calling])
    if (chance.next() < 0.4) counts.killedBackups += Number(await killABackup(crashTest.reelgate, folder, chance))
    const beganAt = crashTest.history.order
    const killing = chance.next() < 0.4 ? killServer(crashTest, chance) : undefined
    counts.killedServers += Number(killing !== undefined)
    const { code, stderr } = await crashTest.reelgate.cli('backup', folder, '--keep', '2')
    expect({ code, stderr }, `round ${round}`).toMatchObject({ code: 0 })
    await killing
    if (!killing) await crashTest.reelgate.kill()
    await calling
    counts.videos += await checkRestored(crashTest, { folder, beganAt, database })
    expect(await crashTest.afterwards(), `round ${round}`).toEqual([])
  }
  process.stderr.write(`${BACKUPS} backups of ${database}: ${JSON.stringify(counts)}, ${crashTest.history.calls} calls\n`)
}

async function killServer({ reelgate }: CrashTest, chance: Chance): Promise<void> {
  await pause(chance.between(0, 1_500))
  await reelgate.kill()
}

/** @returns whether it was killed before it had finished */
async function killABackup({ env }: Reelgate, folder: string, chance: Chance): Promise<boolean> {
  const child = spawn(process.execPath, [MAIN, 'backup', folder], { env: { PATH: process.env.PATH, ...env }, stdio: 'ignore' })
  const ended = new Promise<boolean>((resolve) => child.once('exit', (_, signal) => resolve(signal === 'SIGKILL')))
  await pause(chance.between(100, 1_200))
  child.kill('SIGKILL')
  return ended
}

/**
 * Restores the newest backup, and compares it with what clients know.
 * @param beganAt calls before this place were acknowledged before the backup began; of later ones either outcome may be in it
 * @returns how many videos played
 */
async function checkRestored(
  { reelgate, history, world }: CrashTest,
  { folder, beganAt, database }: { folder: string; beganAt: number; database: DatabaseKind },
): Promise<number> {
  const location = await makeLocation({ database })
  try {
    await cp(reelgate.masterKeyFile, location.masterKeyFile)
    expect(await runCli(['restore', folder], location.env)).toMatchObject({ code: 0 })
    expect((await examine(location, newMemory(), { isRestored: true })).breaches).toEqual([])
    const restored = await startSharedReelgate({ location, copyOf: reelgate })
    try {
      const there = new Set((await restored.owner.list('?limit=40')).rows.map(({ id }) => id))
      const ops = withoutLaterAnswers(history.peek(), { beganAt, world, there })
      const deleted = [...world.gone, ...ops.flatMap((op) => (op.kind === 'delete' && op.outcome === 'ok' ? op.videoIds : []))]
      const made = ops.flatMap((op) => (op.kind === 'make-key' && op.keyId ? [[op.keyId, op.secret ?? '']] : []))
      const keys = Object.fromEntries([...Array.from(world.keys, ([keyId, { secret }]) => [keyId, secret]), ...made])
      expect(judge(world, ops, await observe(restored, deleted, keys))).toEqual([])
      await checkUnfinishedUploads(restored)
      return await playAll(restored)
    } finally {
      await restored.kill()
    }
  } finally {
    await location.remove()
  }
}

/**
 * Of calls that were answered after the backup began it is not known whether the backup has what they did, except for videos that
 * are in it.
 */
function withoutLaterAnswers(
  ops: readonly Op[],
  { beganAt, world, there }: { beganAt: number; world: World; there: ReadonlySet<string> },
): Op[] {
  const isBefore = (op: Op) => op.end < beganAt || (op.kind === 'create' && op.videoId !== undefined && there.has(op.videoId))
  const created = ops.flatMap((op) => (op.kind === 'create' && op.outcome === 'ok' && isBefore(op) ? [op.videoId] : []))
  const isSure = (videoId: string) => world.videos.has(videoId) || created.includes(videoId)
  // Refusals are judged with the server itself. A refused redeem may have opened a session, which the deletion of its video ended
  // before the answer was sent.
  const changes = ops.filter(({ kind, outcome }) => outcome !== 'fail' || kind === 'redeem')
  return changes.map((op) => {
    if (isBefore(op) && op.outcome !== 'fail') return op
    const unknown = { ...op, outcome: 'info' as const }
    if (unknown.kind === 'redeem') return { ...unknown, session: undefined }
    // Videos that were made after the backup began are missing from it, whether or not they were deleted.
    if (unknown.kind === 'delete') return { ...unknown, videoIds: unknown.videoIds.filter(isSure) }
    return unknown
  })
}

/** Their bytes are in no backup, so none of them may be promised. */
async function checkUnfinishedUploads(reelgate: Reelgate): Promise<void> {
  const tus = createTusClient(reelgate.owner)
  const uploads = readRows<{ id: string }>(
    reelgate,
    `select resumable_upload.id from resumable_upload join video on video.id = video_id
     where finished_at_s is null and deleted_at_s is null`,
  )
  for (const { id } of uploads) expect(await tus.offset(`${tus.endpoint}/${id}`), id).toBe(0)
}

/** Plays the videos to their end, in the short run two of them: what was not encoded yet when the backup was made is encoded by the restored server. */
async function playAll(reelgate: Reelgate): Promise<number> {
  const { rows } = await reelgate.owner.list('?limit=40')
  const ready = rows.filter(({ status }) => status === 'ready')
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-restored-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  for (const { id } of sampleOf('restored videos', ready, 2)) {
    await untilFinished(reelgate, id)
    for (const rendition of await downloadVideo(reelgate, id)) {
      const { bytes, warnings } = await decode(await writeRendition(folder, rendition), '-f', 'framehash', '-')
      expect({ id, warnings, hasFrames: /^0, +0,/m.test(bytes.toString()) }).toEqual({ id, warnings: '', hasFrames: true })
    }
  }
  return ready.length
}
