import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Plugin } from 'vite'

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
  'demux/audio/aacdemuxer': 'export default undefined', // containers other than fragmented MP4: hls.js skips those it was built without
  'demux/audio/mp3demuxer': 'export default undefined',
  'demux/tsdemuxer': 'export default undefined',
  'remux/mp4-generator': 'export default undefined', // makes MP4 of them
  'utils/cea-608-parser': 'export default class {}', // captions inside the video
  'utils/fetch-loader': 'export default class {}; export const fetchSupported = () => false', // progressive streaming
  'utils/imsc1-ttml-parser': "export const IMSC1_CODEC = 'stpp.ttml.im1t'; export const parseIMSC1 = () => {}", // captions as XML
}

/**
 * Builds hls.js from its source without what our streams never have: a third of its size. No source is changed. A version that has one
 * of the modules elsewhere fails the build.
 */
export function hlsBuild(): Plugin {
  const { version }: { version: string } = JSON.parse(readFileSync(`${PACKAGE}package.json`, 'utf8'))
  const replaced = new Map(Object.entries(REPLACED).map(([name, code]) => [`${SOURCE}${name}.ts`, code]))
  return {
    name: 'hls-build',
    enforce: 'pre',
    config: () => ({
      define: { ...FLAGS, __VERSION__: JSON.stringify(version) },
      resolve: { alias: { 'hls.js': `${SOURCE}hls.ts` } },
      // As hls.js is built by its makers: its classes declare inherited fields again.
      oxc: { typescript: { removeClassFieldsWithoutInitializer: true }, assumptions: { setPublicClassFields: true } },
    }),
    load(id) {
      const code = replaced.get(id)
      return code === undefined ? undefined : { code, moduleSideEffects: false }
    },
    transform: (_code, id) => (id.startsWith(SOURCE) ? { moduleSideEffects: false } : undefined),
    buildEnd() {
      const missing = [...replaced.keys()].filter((id) => !this.getModuleInfo(id))
      if (missing.length > 0)
        throw new Error(`hls.js has no module such as ${missing[0]}: look at what ${import.meta.filename} replaces`)
    },
  }
}
