import { parentPort, workerData } from 'node:worker_threads'
import { Failure } from '../errors.ts'
import { toSafeWebVtt } from './webvtt.ts'

// The thread of caption.ts: receives a file of captions, and returns plain WebVTT or a sentence about what is wrong.

export type WebVttResult = { webVtt: Uint8Array } | { problem: string }

parentPort?.postMessage(parse(Buffer.from(workerData)))

function parse(captions: Buffer): WebVttResult {
  try {
    return { webVtt: Buffer.from(toSafeWebVtt(captions)) }
  } catch (error) {
    if (error instanceof Failure) return { problem: error.message }
    throw error
  }
}
