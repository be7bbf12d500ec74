import { filledFolder } from './fill.ts'
import { authorization, startConstantPeer } from './list.ts'
import { answersPerS, rawRequest } from './load.ts'
import type { Row } from './row.ts'
import { type Listening, startService } from './service.ts'
import { inTurns } from './turns.ts'

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
      const headers = { ...authorization(apiKey), 'Content-Type': 'application/json' }
      const list = await fetch(`${service.url}/api/videos`, { headers })
      const { rows }: { rows: { id: string }[] } = JSON.parse(await list.text())
      const bodies = Array.from({ length: 1_000 }, (_, viewer) => JSON.stringify({ ttl: 300, userId: `viewer-${viewer}` }))
      const pathTo = (index: number) => `/api/videos/${rows[index % rows.length]?.id}/otp`
      const one = await fetch(`${service.url}${pathTo(0)}`, { method: 'POST', headers, body: bodies[0] ?? '' })
      const peer = await startConstantPeer(scope, apiKey, await one.text())
      const requests = bodies.map((body, index) => rawRequest('POST', pathTo(index), headers, body))
      const answers = ({ url }: Listening) => answersPerS(scope, url, { requests })
      await Promise.all([service, peer].map(answers)) // both warm
      return inTurns(
        PAIRS,
        () => answers(service),
        () => answers(peer),
      )
    },
  },
]
