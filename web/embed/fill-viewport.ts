const FILLING: Readonly<Record<string, string>> = {
  position: 'fixed',
  inset: '0',
  width: '100%',
  height: '100%',
  'max-width': 'none',
  'max-height': 'none',
  margin: '0',
  padding: '0',
  border: '0',
  'border-radius': '0',
  transform: 'none',
  background: '#000',
  'z-index': '2147483647',
}

/**
 * Makes a frame as large as the page's viewport: in the top layer, which no transform, overflow or order of the page affects.
 * @returns what undoes it
 */
export function fillViewport(frame: HTMLIFrameElement): () => void {
  const { style } = frame
  const before = document.createElement('iframe').style
  for (const name of Object.keys(FILLING)) before.setProperty(name, style.getPropertyValue(name), style.getPropertyPriority(name))
  for (const [name, value] of Object.entries(FILLING)) style.setProperty(name, value, 'important')
  const hasTopLayer = 'showPopover' in frame
  if (hasTopLayer) {
    frame.popover = 'manual'
    frame.showPopover()
  }
  return () => {
    if (hasTopLayer) frame.removeAttribute('popover') // which takes it out of the top layer
    for (const name of Object.keys(FILLING))
      style.setProperty(name, before.getPropertyValue(name), before.getPropertyPriority(name))
  }
}
