import { randomBytes } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Demo } from '../../demo/demo.ts'
import { encodePlaybackInfo } from '../../playback/otp.ts'
import { isFromThisMachine } from '../server/from-this-machine.ts'
import { type LimitDeps, limitByAddress } from '../server/limit.ts'
import type { App } from '../wire/app-type.ts'
import { demoPage, demoPolicy } from './page.ts'

// The only routes that give out an OTP without a key: to this machine alone. For all others the address does not exist.

const OtpReply = Type.Object({ otp: Type.String(), playbackInfo: Type.String() })

/** The page of the demo video, and the contract's demo operation (wire-contract.md, section 3). */
export async function demoInterface(app: App, { demo, ...limiting }: { demo: Demo } & LimitDeps): Promise<void> {
  limitByAddress(app, limiting, 'playback')
  app.get('/demo', async (request, reply) => {
    const state = isFromThisMachine(request.raw) ? await demo.findState() : undefined
    if (!state) return reply.callNotFound()
    const otp = state === 'playable' ? await issueOtp(demo) : undefined
    const cspNonce = randomBytes(16).toString('base64url')
    return reply
      .headers({
        'Content-Type': 'text/html; charset=utf-8',
        'Cache-Control': 'no-store',
        'Referrer-Policy': 'same-origin',
        'Content-Security-Policy': demoPolicy(cspNonce),
      })
      .send(demoPage(cspNonce, otp ? { state: 'playable', ...otp } : { state: state === 'failed' ? state : 'being made' }))
  })

  app.get(
    '/api/site/homepage_video',
    {
      schema: {
        summary: 'An OTP of the demo video',
        description: 'For programs on this machine alone, while there is a demo video.',
        response: { 200: OtpReply },
      },
    },
    async (request: FastifyRequest, reply) => {
      const otp = isFromThisMachine(request.raw) ? await issueOtp(demo) : undefined
      if (!otp) return reply.callNotFound()
      return reply.header('Cache-Control', 'no-store').send(otp)
    },
  )
}

async function issueOtp(demo: Demo): Promise<{ otp: string; playbackInfo: string } | undefined> {
  const issued = await demo.issueOtp()
  return issued && { otp: issued.otp, playbackInfo: encodePlaybackInfo(issued.videoId) }
}
