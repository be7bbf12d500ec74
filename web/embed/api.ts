// `api.js`: for pages that contain the player's frame themselves and call `VdoPlayer.getInstance(frame)` (wire-contract.md, section 8).

import { VdoPlayer } from './vdo-player.ts'

window.VdoPlayer ??= VdoPlayer
window.onVdoPlayerV2APIReady?.()
