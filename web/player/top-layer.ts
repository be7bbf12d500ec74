/**
 * Shows or hides what a viewer must be able to read: in the browser's top layer, above the watermarks, which are above everything else in the
 * player. The element has the attribute `popover="manual"`.
 */
export function showOnTop(element: HTMLElement, isShown: boolean): void {
  element.hidden = !isShown
  if (!('showPopover' in element)) return // an older browser: the watermarks cover it
  const isOnTop = element.matches(':popover-open')
  if (isShown && !isOnTop) element.showPopover()
  else if (!isShown && isOnTop) element.hidePopover()
}

/** What goes to full screen comes to lie above what was shown before. */
export function keepOnTop(elements: readonly HTMLElement[]): void {
  document.addEventListener('fullscreenchange', () => {
    for (const element of elements.filter((shown) => !shown.hidden)) {
      showOnTop(element, false)
      showOnTop(element, true)
    }
  })
}
