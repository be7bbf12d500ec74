/** How a page holds the player: docs/embedding.md. */
export type EmbedWay = 'iframe' | 'element' | 'script'

/** The options of the player that the owner chose. An empty one is the player's own. */
export type PlayerOptions = {
  autoplay: boolean
  loop: boolean
  litemode: boolean
  showsTitle: boolean
  controls: 'on' | 'off' | 'native'
  captionLanguage: string
  startAtS: number | ''
  /** `#rrggbb` */
  primaryColor: string
  surfaceColor: string
  borderRadiusPx: number | ''
  fontFamily: string
}

export const PLAYER_DEFAULTS: PlayerOptions = {
  autoplay: false,
  loop: false,
  litemode: false,
  showsTitle: true,
  controls: 'on',
  captionLanguage: '',
  startAtS: '',
  primaryColor: '',
  surfaceColor: '',
  borderRadiusPx: '',
  fontFamily: '',
}

/** What stands in the markup for the OTP, which is another one for each viewer. */
type OtpSlots = { otp: string; playbackInfo: string; encodedPlaybackInfo: string }

const SLOTS: OtpSlots = { otp: '%OTP%', playbackInfo: '%PLAYBACK_INFO%', encodedPlaybackInfo: '%ENCODED_PLAYBACK_INFO%' }

/** Puts what a language writes for the OTP into markup that was made by `embedHtml`. */
export function fillSlots(html: string, { otp, playbackInfo, encodedPlaybackInfo }: OtpSlots): string {
  return html
    .replaceAll(SLOTS.otp, () => otp)
    .replaceAll(SLOTS.playbackInfo, () => playbackInfo)
    .replaceAll(SLOTS.encodedPlaybackInfo, () => encodedPlaybackInfo)
}

/** The markup of the player, with slots for the OTP. */
export function embedHtml(serverUrl: string, way: EmbedWay, player: PlayerOptions): string {
  if (way === 'iframe') return iframeHtml(serverUrl, player)
  const options = namedOptions(player)
  return way === 'element' ? elementHtml(serverUrl, options) : scriptHtml(serverUrl, options)
}

type NamedOption = readonly [name: string, value: string]

/** Those that differ from the player's own, by the names of docs/embedding.md. */
function namedOptions(player: PlayerOptions): NamedOption[] {
  const all: readonly NamedOption[] = [
    ['autoplay', player.autoplay ? 'true' : ''],
    ['loop', player.loop ? 'true' : ''],
    ['litemode', player.litemode ? 'true' : ''],
    ['title', player.showsTitle ? '' : 'off'],
    ['controls', player.controls === 'on' ? '' : player.controls],
    ['ccLanguage', player.captionLanguage.trim()],
    ['t', String(player.startAtS)],
    ['primaryColor', readColor(player.primaryColor)],
    ['surfaceColor', readColor(player.surfaceColor)],
    ['borderRadius', String(player.borderRadiusPx)],
    ['fontFamily', player.fontFamily.trim()],
  ]
  return all.filter(([, value]) => value !== '')
}

/** A color that is still being typed is none. Without `#`, which an address would have to encode. */
function readColor(text: string): string {
  return /^#([0-9a-f]{6})$/i.exec(text)?.[1]?.toLowerCase() ?? ''
}

/** The options for the end of the player's address, each with an `&` before it. */
export function optionsQuery(player: PlayerOptions): string {
  return namedOptions(player)
    .map(([name, value]) => `&${name}=${encodeURIComponent(value).replaceAll("'", '%27')}`)
    .join('')
}

function iframeHtml(serverUrl: string, player: PlayerOptions): string {
  const more = optionsQuery(player).replaceAll('&', '&amp;')
  const address = `${serverUrl}/player/?otp=${SLOTS.otp}&amp;playbackInfo=${SLOTS.encodedPlaybackInfo}${more}`
  return `<iframe src="${address}"
  allow="encrypted-media; fullscreen; autoplay; screen-wake-lock"
  width="640" height="360" style="border:0;width:100%;height:auto;aspect-ratio:16/9"></iframe>`
}

function elementHtml(serverUrl: string, options: readonly NamedOption[]): string {
  const more = options.map(([name, value]) => `\n  ${name}="${escapeHtml(value)}"`).join('')
  return `<script src="${serverUrl}/v2/player.js"></script>
<reelgate-player otp="${SLOTS.otp}" playbackInfo="${SLOTS.playbackInfo}"${more}></reelgate-player>`
}

function scriptHtml(serverUrl: string, options: readonly NamedOption[]): string {
  const more = options.map(([name, value]) => `, ${name}: ${JSON.stringify(value).replaceAll('<', '\\u003c')}`).join('')
  return `<div id="vdo${SLOTS.otp}"></div>
<script src="${serverUrl}/vdo.js"></script>
<script>
vdo.add({ otp: "${SLOTS.otp}", playbackInfo: "${SLOTS.playbackInfo}"${more} })
</script>`
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;')
}
