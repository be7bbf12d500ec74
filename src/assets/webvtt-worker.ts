import { parentPort, workerData } from 'node:worker_threads'
import { Failure } from '../errors.ts'
import { toSafeWebVtt } from './webvtt.ts'

// The thread of caption.ts: a file of captions in, plain WebVTT out, or the sentence that says what is wrong.

export type WebVttResult = { webVtt: Uint8Array } | { wrong: string }

parentPort?.postMessage(answer(Buffer.from(workerData)))

function answer(captions: Buffer): WebVttResult {
  try {
    return { webVtt: Buffer.from(toSafeWebVtt(captions)) }
  } catch (error) {
    if (error instanceof Failure) return { wrong: error.message }
    throw error
  }
}
