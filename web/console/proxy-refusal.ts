import { formatBytes } from './units.ts'

type ProxyAnswer = {
  status: number
  /** The header `Server`. */
  server: string | null
  /** What was sent, where that is known. */
  sentBytes?: number
  /** What was sent is a part of a file. */
  isPart?: boolean
}

/** Whether the answer is a proxy's that finds no server behind it. */
export function isGatewayStatus(status: number): boolean {
  return status === 502 || status === 503 || status === 504 || (status >= 520 && status <= 530) // the last are Cloudflare's
}

/** What an answer means that is not Reelgate's, but of a proxy in front of it. */
export function sentenceOfProxy({ status, server, sentBytes, isPart }: ProxyAnswer): string {
  if (isGatewayStatus(status))
    return `A proxy answered that Reelgate cannot be reached (status ${status}). Check that Reelgate is running.`
  if (status !== 413) return `The server answered with status ${status}. Its log says why.`
  const { name, cure } = LIMITING_PROXIES.find((known) => server?.toLowerCase().startsWith(known.server)) ?? OTHER_PROXY
  const what = sentBytes === undefined ? 'this file' : `${isPart ? 'a part' : 'this file'} of ${formatBytes(sentBytes)}`
  return `${name} in front of Reelgate refuses ${what} as too large (status 413). ${cure}`
}

/** Proxies that limit what is uploaded, by the beginning of their header `Server`. */
const LIMITING_PROXIES = [
  {
    server: 'nginx',
    name: 'nginx',
    cure: 'Its limit is 1 MB unless client_max_body_size says otherwise: set client_max_body_size 0; and reload it.',
  },
  {
    server: 'cloudflare',
    name: 'Cloudflare',
    cure: 'Its limit is 100 MB (Business 200 MB, Enterprise 500 MB): set the DNS record of this address to “DNS only”, or import the video from an address.',
  },
  { server: 'apache', name: 'Apache', cure: 'Set LimitRequestBody 0 for this address, and reload it.' },
] as const

const OTHER_PROXY = { name: 'A proxy', cure: 'Raise its limit of request bodies for /upload. reelgate doctor says what it is.' }
