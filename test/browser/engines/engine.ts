// What tests do with a browser in the same way in every engine.

/** A running browser, which the caller closes. */
export type Engine = {
  /** As the browser itself reports it. */
  version: string
  /** Opens a tab in a profile of its own: no storage, cookie or key of another. */
  openProfile(): Promise<Tab>
  close(): Promise<void>
}

/** The page, or the first frame in it. */
export type Where = 'page' | 'frame'
export type Point = { xPx: number; yPx: number }
export type Key = keyof typeof KEY_VALUES

/** What can be done with a tab in every engine. Points are from the left and top of the page's viewport, or of the frame's. */
export type Tab = {
  /** Resolves when the page and its frames have loaded. */
  goto(address: string): Promise<void>
  reload(): Promise<void>
  /**
   * Runs a function in the page. The browser gets it as text, so it uses nothing of its module; argument and result travel as JSON.
   * @throws Error with the message of what the function throws
   */
  run<Argument, Result>(
    where: Where,
    script: (argument: Argument) => Result | Promise<Result>,
    argument: Argument,
  ): Promise<Result>
  moveMouse(where: Where, to: Point): Promise<void>
  click(where: Where, at: Point): Promise<void>
  doubleClick(where: Where, at: Point): Promise<void>
  press(key: Key): Promise<void>
  screenshot(): Promise<Buffer>
}

/** The keys that tests press, by the character that WebDriver has for each. */
export const KEY_VALUES = {
  Tab: '\ue004',
  Enter: '\ue007',
  Escape: '\ue00c',
  ArrowLeft: '\ue012',
  ArrowUp: '\ue013',
  ArrowRight: '\ue014',
  ArrowDown: '\ue015',
  a: 'a',
  c: 'c',
  k: 'k',
  m: 'm',
  n: 'n',
  p: 'p',
  t: 't',
  ',': ',',
  '.': '.',
} as const

/** What a pointer of WebDriver does for a click. */
export const CLICK = [
  { type: 'pointerDown', button: 0 },
  { type: 'pointerUp', button: 0 },
] as const

/** Of every tab: small, because all of these browsers draw in software here. */
export const VIEWPORT = { width: 640, height: 360 }

/** The text of a function that takes its argument as JSON, and resolves to its result as JSON. */
export function asJsonFunction(script: (argument: never) => unknown): string {
  return `async (json) => JSON.stringify(await (${script})(JSON.parse(json))) ?? 'null'`
}

export const toJson = (argument: unknown): string => JSON.stringify(argument) ?? 'null'

/** A point of the page, from one of the page or of its frame. */
export async function toPagePoint(run: Tab['run'], where: Where, { xPx, yPx }: Point): Promise<Point> {
  if (where === 'page') return { xPx, yPx }
  const [left, top] = await run('page', readFrameCorner, null)
  return { xPx: xPx + left, yPx: yPx + top }
}

function readFrameCorner(): [left: number, top: number] {
  const frame = document.querySelector('iframe')
  const { left, top } = frame.getBoundingClientRect()
  return [left + frame.clientLeft, top + frame.clientTop]
}

declare const document: {
  querySelector(name: 'iframe'): {
    readonly clientLeft: number
    readonly clientTop: number
    getBoundingClientRect(): { left: number; top: number }
  }
}
