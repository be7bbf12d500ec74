import type { Seal } from '../../src/crypto/sealed-file.ts'
import type { SealedSource } from '../../src/sandbox/media-run.ts'

/** A sealed file as ffmpeg is given one. @param sizeBytes of the clear file */
export function sealedSource(file: string, { key, iv }: Seal, sizeBytes: number): SealedSource {
  return withFile({ keyHex: key.toString('hex'), ivHex: iv.toString('hex'), sizeBytes }, file)
}

/** What another process was sent of a source, as a source. */
export function withFile(sent: Omit<SealedSource, 'withLocalCopy'>, file: string): SealedSource {
  return { ...sent, withLocalCopy: (use) => use(file) }
}

export function fileOf(source: SealedSource): Promise<string> {
  return source.withLocalCopy(async (file) => file)
}
