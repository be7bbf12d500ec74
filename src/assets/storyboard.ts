import type { GenerationKey } from '../catalogue/generation-key.ts'
import { listStoryboardSheets } from '../catalogue/storyboard-store.ts'
import { unwrapContentKey } from '../crypto/content-key.ts'
import type { MasterKey } from '../crypto/master-key.ts'
import { openBlob } from '../crypto/sealed-blob.ts'
import type { Db } from '../db/database.ts'
import { findGeneration } from '../encode/generation-store.ts'
import type { Plan } from '../encode/plan.ts'
import type { BlobStore } from '../storage/blob-store.ts'
import type { DamagedFiles } from './damaged-file.ts'
import { type Cue, writeWebVtt } from './webvtt.ts'

/** A video has at most so many pictures: four sheets, whatever its length. */
const MAX_TILES = 400
const MIN_INTERVAL_S = 2
const MAX_COLUMNS = 10
const MAX_ROWS = 10
/** About as many pixels for each shape; the longer side of a very long one is cut. */
const TILE_PIXELS = 160 * 90
const MAX_TILE_SIDE_PX = 240

/**
 * Small pictures of a video, many on each sheet, from left to right and from top to bottom. All sheets but the last are full; all are of
 * one size, that of `columns` × `rows` tiles. What was made is read by the same numbers: another rule needs another type of file.
 */
export type Storyboard = {
  /** Seconds that each picture stands for, the last one a little more or less; it shows one of their first frames. */
  intervalS: number
  tileCount: number
  widthPx: number
  heightPx: number
  columns: number
  rows: number
  sheetCount: number
}

type TilesOnSheets = Omit<Storyboard, 'sheetCount'>

/** Undefined: the file has audio only. Pure. */
export function planStoryboard({ videoTrack, durationS }: Plan): Storyboard | undefined {
  const lowest = videoTrack?.renditions.at(-1)
  if (!lowest) return undefined
  const intervalS = Math.max(MIN_INTERVAL_S, durationS / MAX_TILES)
  const tileCount = Math.min(MAX_TILES, Math.max(1, Math.round(durationS / intervalS)))
  const columns = Math.min(MAX_COLUMNS, tileCount)
  const rows = Math.min(MAX_ROWS, Math.ceil(tileCount / columns))
  return { intervalS, tileCount, ...tileSize(lowest), columns, rows, sheetCount: Math.ceil(tileCount / (columns * rows)) }
}

/** Even numbers, which the format wants, and never more than the video has. */
function tileSize({ widthPx, heightPx }: { widthPx: number; heightPx: number }): { widthPx: number; heightPx: number } {
  const scale = Math.min(1, Math.sqrt(TILE_PIXELS / (widthPx * heightPx)), MAX_TILE_SIDE_PX / Math.max(widthPx, heightPx))
  const even = (px: number) => Math.max(2, 2 * Math.round((px * scale) / 2))
  return { widthPx: even(widthPx), heightPx: even(heightPx) }
}

/** Where the picture of a tile is: on which sheet, and its upper left corner there. Pure. */
function placeTile({ widthPx, heightPx, columns, rows }: TilesOnSheets, tile: number) {
  const onSheet = tile % (columns * rows)
  return {
    sheet: Math.floor(tile / (columns * rows)),
    xPx: (onSheet % columns) * widthPx,
    yPx: Math.floor(onSheet / columns) * heightPx,
  }
}

/** As WebVTT, which other players read, too: each cue names a sheet and a part of it (W3C Media Fragments). Pure. */
export function toStoryboardWebVtt(storyboard: TilesOnSheets, durationS: number, addressOf: (sheet: number) => string): string {
  const { intervalS, tileCount, widthPx, heightPx } = storyboard
  const ms = (tile: number) => Math.round((tile === tileCount ? durationS : tile * intervalS) * 1000)
  const cues = Array.from({ length: tileCount }, (_, tile): Cue => {
    const { sheet, xPx, yPx } = placeTile(storyboard, tile)
    const text = `${addressOf(sheet)}#xywh=${xPx},${yPx},${widthPx},${heightPx}`
    return { startMs: ms(tile), endMs: ms(tile + 1), settings: [], text }
  })
  return writeWebVtt(cues)
}

/** The storyboard of a generation with the ids of its sheets; undefined while it has none. */
export async function findStoryboard(db: Db, key: GenerationKey) {
  const sheets = await listStoryboardSheets(db, key)
  const generation = sheets.length > 0 ? await findGeneration(db, key) : undefined
  const storyboard = generation && planStoryboard(generation.plan)
  if (!generation || !storyboard || sheets.length !== storyboard.sheetCount) return undefined
  return { storyboard, durationS: generation.plan.durationS, sheets, wrappedContentKey: generation.wrappedContentKey }
}

type StoryboardDeps = { db: Db; masterKey: MasterKey; posters: BlobStore; damagedFiles: DamagedFiles }

/** A sheet as WebP. @param sheet counted from 0. Undefined: there is none. @throws DamagedFile */
export async function openStoryboardSheet(deps: StoryboardDeps, key: GenerationKey, sheet: number): Promise<Buffer | undefined> {
  const found = await findStoryboard(deps.db, key)
  const row = found?.sheets[sheet]
  if (!row || !found.wrappedContentKey) return undefined
  const contentKey = unwrapContentKey(deps.masterKey, key.videoId, key.generation, found.wrappedContentKey)
  try {
    return openBlob(contentKey, row.blob, await deps.posters.read(row.blob))
  } catch (error) {
    // Gone if the video was deleted meanwhile; otherwise the disk has lost the file.
    const isThere = (await listStoryboardSheets(deps.db, key)).some(({ blob }) => blob === row.blob)
    if (!isThere) return undefined
    throw await deps.damagedFiles.report({ kind: 'storyboard', videoId: key.videoId, name: row.blob }, error)
  }
}
