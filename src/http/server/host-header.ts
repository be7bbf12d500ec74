import type { IncomingMessage } from 'node:http'
import { Failure } from '../../errors.ts'
import type { App } from '../wire/app-type.ts'
import { PROBE_PATHS } from './health.ts'

/**
 * Refuses what comes without exactly one `Host`, and HTTP/0.9, which has no headers. A proxy in front may have routed a request by another
 * of two hosts than the one that is read here (RFC 9112, section 3.2). The health checks of load balancers speak HTTP/1.0 without a host.
 */
export function refuseUnclearHosts(app: App): void {
  app.addHook('onRequest', ({ raw, routeOptions }, _reply, done) => {
    const hosts = countHosts(raw)
    if (raw.httpVersionMajor < 1) throw new Failure('invalid', 'HTTP/0.9 is not supported. Send HTTP/1.1.')
    const isProbe = hosts === 0 && PROBE_PATHS.includes(routeOptions.url ?? '')
    if (hosts !== 1 && !isProbe) throw new Failure('invalid', 'The request must have exactly one Host header.')
    done()
  })
}

/** Node keeps the first of several. Their distinct values are not used: making them takes as long as a small response. */
function countHosts({ rawHeaders }: IncomingMessage): number {
  let count = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    if (name.length === 4 && name.toLowerCase() === 'host') count += 1
  }
  return count
}
