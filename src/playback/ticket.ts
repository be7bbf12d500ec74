import { createHmac } from 'node:crypto'
import { equalsInConstantTime } from '../crypto/constant-time.ts'
import { deriveKey, type MasterKey } from '../crypto/master-key.ts'

const MAX_AGE_S = 24 * 3600

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
  const key = deriveKey(master.bytes, 'reelgate page-ticket 1', 32)
  const sign = (text: string) => createHmac('sha256', key).update(text).digest('base64url')
  return {
    issue(referer: string | undefined): string {
      const text = `${refererHost(referer)}.${nowS()}`
      return `${text}.${sign(text)}`
    },
    readHost(ticket: string): string | undefined {
      const [, text, host, issuedAtS, mac] = /^((.+)\.(\d+))\.([\w-]{43})$/.exec(ticket) ?? []
      if (!text || !host || !issuedAtS || !mac) return undefined
      const isValid = equalsInConstantTime(sign(text), mac)
      return isValid && nowS() - Number(issuedAtS) < MAX_AGE_S ? host : undefined
    },
  }
}

function refererHost(referer: string | undefined): string {
  return (referer && URL.canParse(referer) && new URL(referer).host) || '-'
}
