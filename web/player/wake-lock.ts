/** Keeps the screen on while a picture moves: browsers let it sleep where nothing is heard. */
export function keepScreenOn(video: HTMLVideoElement, signal: AbortSignal): void {
  if (!('wakeLock' in navigator)) return
  let lock: Promise<WakeLockSentinel | undefined> | undefined
  const update = () => {
    if (!signal.aborted && !document.hidden && !video.paused && video.videoWidth > 0) {
      lock ??= requestLock().catch(() => undefined) // refused, such as with little battery
    } else {
      void lock?.then((held) => held?.release())
      lock = undefined
    }
  }
  for (const type of ['playing', 'pause']) video.addEventListener(type, update, { signal })
  document.addEventListener('visibilitychange', update, { signal }) // a hidden page loses its lock
  signal.addEventListener('abort', update)
}

/** Chromium writes an error into the console where the page around does not allow it. */
async function requestLock(): Promise<WakeLockSentinel | undefined> {
  const permission = await navigator.permissions.query({ name: 'screen-wake-lock' }).catch(() => undefined)
  return permission?.state === 'denied' ? undefined : navigator.wakeLock.request('screen')
}
