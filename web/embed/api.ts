// `api.js`: for pages that contain the player's frame themselves and call `VdoPlayer.getInstance(frame)` (wire-contract.md, section 8).

import { VdoPlayer } from './vdo-player.ts'

type ApiPage = Window & { VdoPlayer?: unknown; onVdoPlayerV2APIReady?: () => void }

const page: ApiPage = window
page.VdoPlayer ??= VdoPlayer
page.onVdoPlayerV2APIReady?.()
