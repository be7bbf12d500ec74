/** What Safari has besides the standard. */
type SafariVideo = HTMLVideoElement & { webkitSetPresentationMode?(mode: string): void; readonly webkitPresentationMode?: string }

/** The video in a small window of the browser (picture-in-picture), which shows no watermark. */
export type Floating = {
  /** For a video without a watermark: its button floats it, where the browser can. @returns whether it can */
  allow(button: HTMLButtonElement): boolean
  toggle(): void
  /** Back into the page. */
  end(): void
}

/** Keeps the video in this page until `allow`: what floats it is undone, and it is paused. */
export function keepInPage(video: SafariVideo): Floating {
  let isAllowed = false
  video.addEventListener('enterpictureinpicture', forbid)
  video.addEventListener('webkitpresentationmodechanged', forbid)

  function forbid() {
    if (isAllowed || !isFloating()) return
    video.pause()
    end()
  }

  function isFloating(): boolean {
    return document.pictureInPictureElement === video || video.webkitPresentationMode === 'picture-in-picture'
  }

  function toggle() {
    if (!isAllowed) return
    if (isFloating()) end()
    else video.requestPictureInPicture().catch(() => {}) // the browser says no, or there is no frame yet
  }

  function end() {
    if (document.pictureInPictureElement === video) document.exitPictureInPicture().catch(() => {})
    else if (isFloating()) video.webkitSetPresentationMode?.('inline')
  }

  return {
    allow(button) {
      if (document.pictureInPictureEnabled !== true) return false
      if (isAllowed) return true
      isAllowed = true
      video.disablePictureInPicture = false
      button.addEventListener('click', toggle)
      video.addEventListener('loadedmetadata', () => {
        button.hidden = video.videoWidth === 0 // audio only
      })
      video.addEventListener('emptied', () => {
        button.hidden = true
      })
      for (const type of ['enterpictureinpicture', 'leavepictureinpicture']) {
        video.addEventListener(type, () => {
          button.ariaPressed = String(isFloating())
        })
      }
      return true
    },
    toggle,
    end,
  }
}
