import { createHmac } from 'node:crypto'
import { equalsInConstantTime } from '../crypto/constant-time.ts'
import { type MasterKey, signingKeys } from '../crypto/master-key.ts'

const MAX_AGE_S = 24 * 3600

export const PAGE_TICKET_KEY = { info: 'reelgate page-ticket 1', lengthBytes: 32 } as const

export type Tickets = {
  issue(referer: string | undefined): string
  /** The embedding host of a valid, recent ticket; undefined for any other. */
  readHost(ticket: string): string | undefined
}

/**
 * `host.slot.HMAC`: names the host that embedded the player page, as the server saw it (`-` without a Referer).
 * Redeem records it and checks the whitelist with it (playback-protocol.md, section 1).
 */
export function createTickets(master: MasterKey, nowS: () => number): Tickets {
  const keys = () => signingKeys(master, PAGE_TICKET_KEY.info, PAGE_TICKET_KEY.lengthBytes, nowS())
  const sign = (text: string, key: Buffer) => createHmac('sha256', key).update(text).digest('base64url')
  return {
    issue(referer: string | undefined): string {
      const text = `${refererHost(referer)}.${nowS()}`
      return `${text}.${sign(text, keys()[0])}`
    },
    readHost(ticket: string): string | undefined {
      const [, text, host, issuedAtS, mac] = /^((.+)\.(\d+))\.([\w-]{43})$/.exec(ticket) ?? []
      if (!text || !host || !issuedAtS || !mac) return undefined
      const isValid = keys().some((key) => equalsInConstantTime(sign(text, key), mac))
      return isValid && nowS() - Number(issuedAtS) < MAX_AGE_S ? host : undefined
    },
  }
}

/** The host of a Referer; `-` for none. */
export function refererHost(referer: string | undefined): string {
  return (referer && URL.canParse(referer) && new URL(referer).host) || '-'
}
