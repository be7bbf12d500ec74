import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { Failure } from '../../errors.ts'
import { type Asset, readAsset } from '../pages/asset.ts'

const Manifest = Type.Record(Type.String(), Type.Object({ file: Type.String(), css: Type.Optional(Type.Array(Type.String())) }))

/** What Vite built: the files that the player's page names, and the scripts for other sites' pages. */
export type PlayerAssets = {
  script: string
  style: string
  files: ReadonlyMap<string, Asset>
  embeds: Readonly<Record<EmbedFile, Asset>>
}
/** `web/embed`: the API for a page that holds the frame, the two elements, `vdo.add` of older embeds, and the types of all but that. */
export type EmbedFile = 'api.js' | 'player.js' | 'uploader.js' | 'vdo.js' | 'reelgate.d.ts'

/**
 * Reads the player that Vite built.
 * @param manifestFile names the other files, which are in the same folder
 * @throws Failure `unavailable` when it was not built
 */
export function readPlayerAssets(manifestFile: string): PlayerAssets {
  const folder = dirname(manifestFile)
  const manifest = readManifest(manifestFile)
  const entry = manifest['player/main.ts']
  const style = entry?.css?.[0]
  if (!entry || !style)
    throw new Failure('unavailable', 'The player is not built. Start Reelgate with npm start, which builds it.')
  const names = Object.values(manifest).flatMap(({ file, css = [] }) => [file, ...css])
  const files = new Map(names.map((name) => [name, readAsset(join(folder, name))]))
  const embed = (file: EmbedFile) => readAsset(join(folder, 'embed', file))
  const elements = { 'player.js': embed('player.js'), 'uploader.js': embed('uploader.js') }
  const embeds = { 'api.js': embed('api.js'), ...elements, 'vdo.js': embed('vdo.js'), 'reelgate.d.ts': embed('reelgate.d.ts') }
  return { script: entry.file, style, files, embeds }
}

function readManifest(file: string): Record<string, { file: string; css?: string[]; isEntry?: boolean }> {
  try {
    return Value.Parse(Manifest, JSON.parse(readFileSync(file, 'utf8')))
  } catch (cause) {
    throw new Failure('unavailable', 'The player is not built. Start Reelgate with npm start, which builds it.', { cause })
  }
}
