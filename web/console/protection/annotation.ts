export type Watermark = { text: string; color: string; alpha: number; size: number; moves: boolean }

export const NEW_WATERMARK: Watermark = { text: '{id}', color: '#ffffff', alpha: 0.6, size: 22, moves: true }

/** How long a moving one stays in a place; also the server's default. */
export const INTERVAL_MS = '5000'

/** What brings the values of a text's placeholders to an OTP; `{ip}` and `{date}` are never missing. */
const NEEDED = { '{id}': 'userId', '{name}': 'viewer.name', '{email}': 'viewer.email' } as const

/** The options that each OTP with these watermarks has to bring. @param annotate as an OTP or a default has it */
export function listNeeded(annotate: unknown) {
  const text = JSON.stringify(annotate) ?? ''
  return Object.entries(NEEDED).flatMap(([name, option]) => (text.includes(name) ? [option] : []))
}

/** What the owner's site has to send, in a sentence; empty where it is nothing. */
export function needsSentence(needed: readonly string[]): string {
  return needed.length === 0
    ? ''
    : `Your site must send ${needed.join(' and ')} with each OTP: one without is refused. The code for your site sends it.`
}

/** A watermark as `annotate` has it: docs/embedding.md, "Watermarks". */
export function toAnnotation({ text, color, alpha, size, moves }: Watermark) {
  const look = { text, color: `0x${color.slice(1).toUpperCase()}`, alpha: String(alpha), size: String(size) }
  return moves ? { type: 'rtext', ...look, interval: INTERVAL_MS } : { type: 'text', ...look, x: '3%', y: '4%' }
}
