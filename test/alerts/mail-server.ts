import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { expect, onTestFinished } from 'vitest'

export const USER = 'alerts@example.org'
export const PASSWORD = 'p@ss/word-4711'
/** As it is written in a URL. */
export const LOGIN = 'alerts%40example.org:p%40ss%2Fword-4711'

export type ReceivedMail = {
  from: string
  to: string[]
  isEncrypted: boolean
  user: string | undefined
  headers: string
  text: string
}

export type MailServer = {
  port: number
  /** What it accepted. */
  received: ReceivedMail[]
  /** What it answers to the next mails instead of accepting them; undefined: it accepts them. */
  refuse(reply?: { responseCode: number; message: string }): void
  /** The headers of all mails that it was sent, refused ones included. */
  offered: string[]
  /** Resolves with the mails that have these words in their subject once there are so many. */
  until(subject: string, count: number): Promise<ReceivedMail[]>
}

/** A mail server on this machine for this test; it knows one user. */
export async function startMailServer(options: SMTPServerOptions = {}): Promise<MailServer> {
  const received: ReceivedMail[] = []
  let refusal: { responseCode: number; message: string } | undefined
  const offered: string[] = []
  const server = new SMTPServer({
    authOptional: true,
    allowInsecureAuth: true,
    disabledCommands: options.key ? [] : ['STARTTLS'],
    disableReverseLookup: true,
    onAuth({ username, password }, _session, done) {
      if (username === USER && password === PASSWORD) return done(null, { user: username })
      done(Object.assign(new Error(`Wrong: ${password}`), { responseCode: 535 }))
    },
    async onData(stream, session, done) {
      const raw = Buffer.concat(await Array.fromAsync(stream)).toString()
      const [head = '', ...body] = raw.split('\r\n\r\n')
      const headers = head.replaceAll(/\r\n\s+/g, ' ')
      offered.push(headers)
      if (refusal) return done(Object.assign(new Error(refusal.message), refusal))
      const { mailFrom, rcptTo } = session.envelope
      const from = mailFrom ? mailFrom.address : ''
      const mail = { headers, text: body.join('\n\n').replaceAll('=\r\n', '') }
      received.push({ from, to: rcptTo.map(({ address }) => address), isEncrypted: session.secure, user: session.user, ...mail })
      done(null, 'queued as 4711')
    },
    ...options,
  })
  server.on('error', () => undefined) // clients that hang up
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  onTestFinished(() => new Promise((resolve) => server.close(resolve)))
  return {
    port: (server.server.address() as AddressInfo).port,
    received,
    refuse(reply) {
      refusal = reply
    },
    offered,
    async until(subject, count) {
      const isAbout = () => received.filter(({ headers }) => /^Subject: (.*)$/m.exec(headers)?.[1]?.includes(subject))
      await expect.poll(() => isAbout().length).toBeGreaterThanOrEqual(count)
      return isAbout()
    },
  }
}
