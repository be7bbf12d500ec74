import { copyFilledFolder, type FilledFolder } from './fill.ts'
import { measureInterleaved } from './interleaved.ts'
import { authorization, startConstantPeer } from './list.ts'
import { formatRequest, measureResponsesPerS } from './load.ts'
import type { Row } from './row.ts'
import { type ListeningProcess, startService } from './service.ts'

const PAIRS = 5

export const OTP_ROWS: readonly Row[] = [
  {
    name: 'otp',
    what: 'durable OTPs, 50 connections; peer: Fastify, the same POST, validated body, key in memory, constant response',
    unit: 'per s',
    aim: { ratioAtLeast: 0.4 },
    measure: async (scope) => {
      const { dataDir, apiKey } = await copyFilledFolder(scope, 10_000)
      const service = await startService(scope, dataDir)
      const requests = await otpRequests({ dataDir, apiKey }, service)
      const peer = await startConstantPeer(scope, apiKey, JSON.stringify({ otp: 'x'.repeat(64), playbackInfo: 'x'.repeat(64) }))
      const measure = ({ url }: ListeningProcess) => measureResponsesPerS(scope, url, { requests })
      await Promise.all([service, peer].map(measure)) // warm up both
      return measureInterleaved(
        PAIRS,
        () => measure(service),
        () => measure(peer),
      )
    },
  },
]

/** Requests for OTPs of 1 000 viewers for the newest videos. */
export async function otpRequests({ apiKey }: FilledFolder, { url }: ListeningProcess): Promise<string[]> {
  const headers = { ...authorization(apiKey), 'Content-Type': 'application/json' }
  const list = await fetch(`${url}/api/videos`, { headers })
  const { rows }: { rows: { id: string }[] } = JSON.parse(await list.text())
  return Array.from({ length: 1_000 }, (_, viewer) =>
    formatRequest(
      'POST',
      `/api/videos/${rows[viewer % rows.length]?.id}/otp`,
      headers,
      JSON.stringify({ ttl: 300, userId: `viewer-${viewer}` }),
    ),
  )
}
