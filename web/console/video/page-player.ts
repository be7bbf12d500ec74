/** The video of the player on this page, which is of this origin. */
export function findPlayer(): HTMLVideoElement | null | undefined {
  return document.querySelector('iframe')?.contentDocument?.querySelector('video')
}

export function seekPlayer(startS: number): void {
  const player = findPlayer()
  if (player) player.currentTime = Math.max(startS, 0.001) // before it is played, 0 would be no choice
}
