type CloseWatcherLike = EventTarget & { destroy(): void }
declare global {
  var CloseWatcher: (new () => CloseWatcherLike) | undefined
}

/**
 * Calls `leave` when the viewer asks to close what is open by a means that is no key press, such as Android's back button.
 * Where the browser has no such request, nothing: there Escape and the element's own button close it.
 */
export function onCloseRequest(leave: () => void): { watch(): void; end(): void } {
  let watcher: CloseWatcherLike | undefined
  function end() {
    watcher?.destroy()
    watcher = undefined
  }
  return {
    /** For the next request. */
    watch() {
      end()
      if (!globalThis.CloseWatcher) return
      watcher = new globalThis.CloseWatcher()
      watcher.addEventListener('close', () => {
        watcher = undefined
        leave()
      })
    },
    end,
  }
}
