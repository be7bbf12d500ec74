export type Watermark = { text: string; color: string; alpha: number; size: number; moves: boolean }

export const NEW_WATERMARK: Watermark = { text: '{id}', color: '#ffffff', alpha: 0.6, size: 22, moves: true }

/** How long a moving one stays in a place; also the server's default. */
export const INTERVAL_MS = '5000'

/** A watermark as `annotate` has it: docs/embedding.md, "Watermarks". */
export function toAnnotation({ text, color, alpha, size, moves }: Watermark) {
  const look = { text, color: `0x${color.slice(1).toUpperCase()}`, alpha: String(alpha), size: String(size) }
  return moves ? { type: 'rtext', ...look, interval: INTERVAL_MS } : { type: 'text', ...look, x: '3%', y: '4%' }
}
