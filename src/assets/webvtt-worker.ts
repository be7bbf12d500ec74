import { parentPort, workerData } from 'node:worker_threads'
import { Failure } from '../errors.ts'
import { toSafeWebVtt } from './safe-webvtt.ts'
import { shiftWebVtt } from './webvtt.ts'

// The thread of caption.ts: receives a file of captions, and returns plain WebVTT or a sentence about what is wrong.

export type WebVttResult = { webVtt: Uint8Array } | { problem: string }

/** What the thread is started with. */
export type WebVttRequest = { captions: Uint8Array; language: string; laterMs: number }

const { captions, language, laterMs }: WebVttRequest = workerData
parentPort?.postMessage(parse(Buffer.from(captions), language))

function parse(captions: Buffer, language: string): WebVttResult {
  try {
    return { webVtt: Buffer.from(shiftWebVtt(toSafeWebVtt(captions, language), -laterMs)) }
  } catch (error) {
    if (error instanceof Failure) return { problem: error.message }
    throw error
  }
}
