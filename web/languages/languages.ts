import type { Language } from './contents.ts'

/** What the player says besides English, each loaded when a viewer or an owner needs it. */
export const LANGUAGES: Readonly<Record<string, () => Promise<{ LANGUAGE: Language }>>> = {
  ar: () => import('./arabic.ts'),
  de: () => import('./german.ts'),
  es: () => import('./spanish.ts'),
  fr: () => import('./french.ts'),
  hi: () => import('./hindi.ts'),
  id: () => import('./indonesian.ts'),
  ja: () => import('./japanese.ts'),
  pt: () => import('./portuguese.ts'),
  ru: () => import('./russian.ts'),
  tr: () => import('./turkish.ts'),
  zh: () => import('./chinese.ts'),
}
