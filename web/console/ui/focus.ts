/** When what had the focus is gone, such as a deleted row: the start of the page gets it, so that a screen reader goes on from there. */
export function focusIfLost(): void {
  if (document.activeElement === null || document.activeElement === document.body) focusPage()
}

export function focusPage(): void {
  document.querySelector<HTMLElement>('#main')?.focus({ preventScroll: true })
}
