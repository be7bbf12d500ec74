/** What names a browser in the text that it sends; the more special ones first, since most of them name Chrome and Safari, too. */
const TOKENS = {
  ...{ Edg: 'Edge', EdgA: 'Edge', EdgiOS: 'Edge', OPR: 'Opera', SamsungBrowser: 'Samsung Internet', Firefox: 'Firefox' },
  ...{ FxiOS: 'Firefox', HeadlessChrome: 'Chrome', CriOS: 'Chrome', Chrome: 'Chrome', Safari: 'Safari' },
}

/** Undefined: not one of the known. */
export function browserName(userAgent: string): string | undefined {
  return Object.entries(TOKENS).find(([token]) => userAgent.includes(`${token}/`))?.[1]
}
