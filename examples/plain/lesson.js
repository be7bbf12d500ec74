// Plain JavaScript: the page contains no OTP, so it may be cached; the script gets one for this viewer.

const player = document.querySelector('reelgate-player')
const status = document.querySelector('[role="status"]')
let loads = 0

player?.addEventListener('statusChange', ({ detail }) => {
  if (detail === 'otpNeeded' && loads < 3) load() // it was used or has expired
})
player?.addEventListener('ended', () => {
  if (status) status.textContent = 'Watched to the end.'
})
load()

async function load() {
  loads += 1
  const answer = await fetch('/otp', { method: 'POST' })
  if (!answer.ok) {
    if (status) status.textContent = 'The video is not available at the moment.'
    return
  }
  const { otp, playbackInfo } = await answer.json()
  player?.setAttribute('playbackInfo', playbackInfo)
  player?.setAttribute('otp', otp)
}
