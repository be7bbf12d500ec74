import { execFile } from 'node:child_process'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { onTestFinished } from 'vitest'
import { keepVideo } from '../../videos.ts'

// Digits that espeak-ng speaks, and a program that recognizes them: PocketSphinx, both from Debian.

export const DIGITS = ['three', 'seven', 'one', 'nine', 'four', 'six', 'two', 'eight', 'five', 'zero'] as const
const FIRST_S = 0.5
const EVERY_S = 1.5

/** When a digit begins, in seconds. */
export const startOf = (index: number) => FIRST_S + index * EVERY_S

/** @returns a video of 16 s in which each of the digits is spoken, one every 1.5 s */
export function makeSpokenVideo(): Promise<string> {
  return keepVideo(`en-gb 150 30 ${DIGITS} ${FIRST_S} ${EVERY_S}`, '.mp4', async (file) => {
    const folder = await mkdtemp(path.join(tmpdir(), 'reelgate-speech-'))
    try {
      const words = DIGITS.map((digit) => ({ digit, wav: path.join(folder, `${digit}.wav`) }))
      for (const { digit, wav } of words)
        await promisify(execFile)('espeak-ng', ['-v', 'en-gb', '-s', '150', '-p', '30', '-w', wav, `${digit}.`])
      const delays = words.map((_, index) => `[${index}]adelay=${startOf(index) * 1000}[word${index}]`)
      const graph = `${delays.join(';')};${words.map((_, index) => `[word${index}]`).join('')}amix=inputs=${words.length}:normalize=0`
      await promisify(execFile)('ffmpeg', [
        ...['-nostdin', '-v', 'error', ...words.flatMap(({ wav }) => ['-i', wav])],
        ...['-f', 'lavfi', '-i', 'color=c=0x203040:size=64x64:rate=5:duration=16'],
        ...['-filter_complex', `${graph},apad=whole_dur=16[speech]`, '-map', '[speech]', '-map', `${words.length}:v`],
        ...['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-g', '5', '-c:a', 'aac', '-y', file],
      ])
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })
}

/** A folder with the program and its files, and the environment of a server that uses them. The caller removes it. */
export async function makeTranscriber() {
  const folder = await mkdtemp(path.join(tmpdir(), 'reelgate-transcriber-'))
  for (const file of ['transcribe.sh', 'digits.gram'])
    await copyFile(path.join(import.meta.dirname, file), path.join(folder, file))
  const program = path.join(folder, 'transcribe.sh')
  return {
    folder,
    program,
    env: { REELGATE_TRANSCRIBE_COMMAND: program, REELGATE_TRANSCRIBE_FILES: folder },
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}

/** As `makeTranscriber`, for one test. */
export async function newTranscriber() {
  const transcriber = await makeTranscriber()
  onTestFinished(transcriber.remove)
  return transcriber
}
