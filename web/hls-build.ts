import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Plugin, transformWithOxc } from 'vite'

const PACKAGE = fileURLToPath(new URL('../node_modules/hls.js/', import.meta.url))
const SOURCE = `${PACKAGE}src/`

/** hls.js's own switches for what it can be built without. */
const FLAGS = {
  __USE_ALT_AUDIO__: true,
  __USE_SUBTITLES__: true,
  __USE_CMCD__: false,
  __USE_CONTENT_STEERING__: false,
  __USE_EME_DRM__: false,
  __USE_IFRAMES__: false,
  __USE_INTERSTITIALS__: false,
  __USE_M2TS_ADVANCED_CODECS__: false,
  __USE_MEDIA_CAPABILITIES__: false,
  __USE_VARIABLE_SUBSTITUTION__: false,
}

/** What none of our streams has and no switch removes: modules, and what takes their place. */
const REPLACED = {
  'controller/cmcd-controller': 'export default undefined', // needs a package that hls.js does not name
  'controller/fps-controller': 'export default undefined', // only reports dropped frames
  'controller/id3-track-controller': 'export default undefined', // timed metadata
  'controller/latency-controller': 'export default undefined', // live streams
  'demux/tsdemuxer': 'export default undefined', // MPEG-TS, whose module is not free of side effects
  'utils/cea-608-parser': 'export default class {}', // captions inside the video
  'utils/fetch-loader': 'export default class {}; export const fetchSupported = () => false', // progressive streaming
  'utils/imsc1-ttml-parser': "export const IMSC1_CODEC = 'stpp.ttml.im1t'; export const parseIMSC1 = () => {}", // captions as XML
}

/** Containers other than fragmented MP4. */
const OTHER_CONTAINERS = /\{ demux: (?!MP4Demuxer)\w+, remux: \w+ \},/g

/**
 * Builds hls.js from its source without what our streams never have: a third of its size. A version whose source has other names fails
 * the build.
 */
export function hlsBuild(): Plugin {
  const { version }: { version: string } = JSON.parse(readFileSync(`${PACKAGE}package.json`, 'utf8'))
  const replaced = new Map(Object.entries(REPLACED).map(([name, code]) => [`${SOURCE}${name}.ts`, code]))
  return {
    name: 'hls-build',
    enforce: 'pre',
    config: () => ({ define: { ...FLAGS, __VERSION__: JSON.stringify(version) } }),
    resolveId: (id) => (id === 'hls.js' ? `${SOURCE}hls.ts` : undefined),
    load: (id) => replaced.get(id),
    async transform(code, id) {
      if (!id.startsWith(SOURCE)) return undefined
      const cut = id === `${SOURCE}demux/transmuxer.ts` ? cutContainers(code) : code
      const { code: built, map } = await transformWithOxc(cut, id, {
        // As Babel builds it: its classes declare inherited fields again.
        typescript: { removeClassFieldsWithoutInitializer: true },
        assumptions: { setPublicClassFields: true },
      })
      return { code: built, map, moduleSideEffects: false }
    },
  }
}

function cutContainers(code: string): string {
  if (code.match(OTHER_CONTAINERS)?.length !== 3) throw new Error('hls.js names its containers otherwise: look at its muxConfig')
  return code.replace(OTHER_CONTAINERS, '')
}
