import { type Filled, filledFolder } from './fill.ts'
import { measureInterleaved } from './interleaved.ts'
import { authorization, startConstantPeer } from './list.ts'
import { answersPerS, rawRequest } from './load.ts'
import type { Row } from './row.ts'
import { type Listening, startService } from './service.ts'

const PAIRS = 5

export const OTP_ROWS: readonly Row[] = [
  {
    name: 'otp',
    what: 'durable OTPs, 50 connections; peer: Fastify, the same POST, body checked, key in memory, constant reply',
    unit: 'per s',
    aim: { ratioAtLeast: 0.35 },
    measure: async (scope) => {
      const { dataDir, apiKey } = await filledFolder(scope, 10_000)
      const service = await startService(scope, dataDir)
      const requests = await otpRequests({ dataDir, apiKey }, service)
      const peer = await startConstantPeer(scope, apiKey, JSON.stringify({ otp: 'x'.repeat(64), playbackInfo: 'x'.repeat(64) }))
      const answers = ({ url }: Listening) => answersPerS(scope, url, { requests })
      await Promise.all([service, peer].map(answers)) // both warm
      return measureInterleaved(
        PAIRS,
        () => answers(service),
        () => answers(peer),
      )
    },
  },
]

/** For some viewers of the newest videos. */
export async function otpRequests({ apiKey }: Filled, { url }: Listening): Promise<string[]> {
  const headers = { ...authorization(apiKey), 'Content-Type': 'application/json' }
  const list = await fetch(`${url}/api/videos`, { headers })
  const { rows }: { rows: { id: string }[] } = JSON.parse(await list.text())
  return Array.from({ length: 1_000 }, (_, viewer) =>
    rawRequest(
      'POST',
      `/api/videos/${rows[viewer % rows.length]?.id}/otp`,
      headers,
      JSON.stringify({ ttl: 300, userId: `viewer-${viewer}` }),
    ),
  )
}
