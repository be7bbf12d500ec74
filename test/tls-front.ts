import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { createServer } from 'node:tls'
import { onTestFinished } from 'vitest'
import type { makeCertificate } from './certificate.ts'

/**
 * TLS in front of a server without it, until the test has finished.
 * @returns its port, and `lead`, which says where to: a server is started with its public address, and has its own one then
 */
export async function startTlsFront({ key, cert }: ReturnType<typeof makeCertificate>) {
  let target: { port: number; host: string } | undefined
  const front = createServer({ key, cert }, (outer) => {
    if (!target) return outer.destroy()
    const inner = connect(target)
    outer.on('error', () => inner.destroy())
    inner.on('error', () => outer.destroy())
    outer.pipe(inner).pipe(outer)
  })
  front.listen(0, '127.0.0.1')
  await once(front, 'listening')
  onTestFinished(() => void front.close())
  return {
    port: (front.address() as AddressInfo).port,
    lead(url: string) {
      const { hostname, port } = new URL(url)
      target = { host: hostname, port: Number(port) }
    },
  }
}
