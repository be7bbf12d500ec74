import { useDebouncedValue } from '@mantine/hooks'
import { useState } from 'react'
import { optionsQuery, type PlayerOptions } from './embed-html.ts'
import { PlayerFrame } from './player-frame.tsx'

const TYPING_PAUSE_MS = 400

/** This browser may load the player again with the same OTP, but a session ends after 32 pages. */
const LOADS_PER_OTP = 30

/** The player as it looks and starts with these options. It follows them, a pause in typing later, in one session. */
export function OptionsPreview({ videoId, player }: { videoId: string; player: PlayerOptions }) {
  const [options] = useDebouncedValue(optionsQuery(player), TYPING_PAUSE_MS)
  const [shown, setShown] = useState({ options, loads: 0 })
  if (shown.options !== options) setShown({ options, loads: shown.loads + 1 })
  const purpose = `options-${Math.floor(shown.loads / LOADS_PER_OTP)}`
  return <PlayerFrame videoId={videoId} title="Player with these options" options={shown.options} purpose={purpose} />
}
