/** Why a video cannot be encoded: a status the catalogue shows, and a sentence for its owner. Trying again does not help. */
export class MediaFailure extends Error {
  readonly status: 'Not a media file' | 'Encoding error'
  constructor(status: 'Not a media file' | 'Encoding error', reason: string, options?: ErrorOptions) {
    super(reason, options)
    this.status = status
  }
}

/**
 * A chunk was reached by a seek and the decoder complained: its pictures may be wrong although counts and exit code are right
 * (cockatoo.mp4: SSIM 0.59). Publish nothing of it and encode the rest of the video with `decodesFromStart: true`.
 */
export class InexactSeek extends Error {
  constructor(decoderLine: string) {
    super(`the source does not decode cleanly after a seek: ${decoderLine}`)
  }
}

/** Something its owner should know of a video that plays all the same: one of its streams ends early. */
export function truncationReason(stream: 'video' | 'audio', atS: number, durationS: number): string {
  return `The ${stream === 'video' ? 'picture' : 'sound'} breaks off at ${clockTime(atS)} of ${clockTime(durationS)}.`
}

/** A place in a video as players show it: 0:08, 75:03. */
export function clockTime(seconds: number): string {
  return `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, '0')}`
}
