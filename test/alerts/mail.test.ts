import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { ALERT_CAUSES } from '../../src/alerts/cause.ts'
import { writeAlertMail } from '../../src/alerts/mail-text.ts'
import { checkMailServer } from '../../src/alerts/smtp.ts'
import { readConfig } from '../../src/config/config.ts'
import { makeCertificate } from '../certificate.ts'
import { startReelgate as startInProcess } from '../in-process.ts'
import { makeLocation } from '../installation-folder.ts'
import { runCli, startReelgate } from '../reelgate.ts'
import { changeRows, readRows } from '../rows.ts'
import { LOGIN, type MailServer, PASSWORD, startMailServer, USER } from './mail-server.ts'

// Alerts by e-mail, received by a real mail server on this machine.

const DAY_S = 24 * 3600

const settings = ({ port }: Pick<MailServer, 'port'>) => ({
  REELGATE_SMTP_URL: `smtp://127.0.0.1:${port}`,
  REELGATE_ALERT_TO: 'ann@example.org, ben@example.org',
})

test('an alert is one e-mail for each cause and day, over TLS to a server that wants a password, which no log has', async () => {
  const { key, cert, file } = makeCertificate()
  const mails = await startMailServer({ key, cert, authOptional: false, allowInsecureAuth: false })
  const env = {
    ...settings(mails),
    REELGATE_SMTP_URL: `smtp://${LOGIN}@127.0.0.1:${mails.port}?tls=required`,
    REELGATE_ALERT_FROM: 'reelgate@example.org',
    NODE_EXTRA_CA_CERTS: file,
    REELGATE_LOG_LEVEL: 'trace',
  }
  const reelgate = await startReelgate({ env })
  const { owner } = reelgate
  const path = join(reelgate.dataDir, 'no.mp4')
  await writeFile(path, 'no video')
  await owner.until(await owner.upload('First\nlesson', path), 'Not a media file')
  const causeOf = ({ text }: { text: string }) => /\(([a-z-]+)\) at /.exec(text)?.[1]
  const isOf = (cause: string) => mails.received.filter((mail) => causeOf(mail) === cause)
  await expect.poll(() => isOf('encode-failed')).toHaveLength(1)
  const [mail] = isOf('encode-failed')
  expect(mail).toMatchObject({
    from: 'reelgate@example.org',
    to: ['ann@example.org', 'ben@example.org'],
    isEncrypted: true,
    user: USER,
    headers: expect.stringMatching(/^Subject: \[Reelgate \S+\] A video could not be encoded$/m),
    text: expect.stringMatching(/video First lesson \(\w{32}\), reason /),
  })
  expect(mail?.headers).toMatch(/^Auto-Submitted: auto-generated$/m)

  // Another video on the same day, and a restart: only the other cause is a mail.
  await owner.until(await owner.upload('Second lesson', path), 'Not a media file')
  const before = reelgate.output()
  await reelgate.stop()
  changeRows(reelgate, 'update api_key set expires_at_s = ?', Math.floor(Date.now() / 1000 + 5.5 * DAY_S))
  await reelgate.restart()
  await expect.poll(() => isOf('api-key-ends')).toHaveLength(1)
  expect(isOf('encode-failed')).toHaveLength(1)
  expect(readRows(reelgate, "select sent_at_s > 0 as sent, attempts from mail where cause = 'encode-failed'")).toEqual([
    { sent: 1, attempts: 1 },
  ])

  const doctor = await reelgate.cli('doctor')
  expect(doctor.stdout).toMatch(/^ok +e-mail +127\.0\.0\.1:\d+ takes mails for ann@example\.org, ben@example\.org\.$/m)
  const wrong = { ...env, REELGATE_SMTP_URL: env.REELGATE_SMTP_URL.replace('4711', '4712') }
  const refused = await runCli(['doctor'], { ...reelgate.env, ...wrong })
  expect(refused.stdout).toMatch(/^trouble +e-mail +REELGATE_SMTP_URL: .* does not accept the user name or the password/m)
  for (const text of [before, reelgate.output(), doctor.stdout, refused.stdout, refused.stderr]) {
    expect(text).not.toContain(PASSWORD.slice(0, 8))
    expect(text).not.toContain(LOGIN)
  }
})

test('an e-mail that the server refuses is sent again later, under the same Message-ID, and given up after seven attempts', async () => {
  const mails = await startMailServer()
  mails.refuse({ responseCode: 451, message: 'Try again later' })
  const reelgate = await startInProcess({ env: settings(mails) })
  const { owner } = reelgate
  const path = join(reelgate.dataDir, 'no.mp4')
  await writeFile(path, 'no video')
  await owner.until(await owner.upload('A lesson', path), 'Not a media file')
  const row = () =>
    readRows<{ attempts: number; problem: string | null; wait: number; sent: number | null }>(
      reelgate,
      "select attempts, problem, due_at_s - ? as wait, sent_at_s as sent from mail where cause = 'encode-failed'",
      Math.floor(Date.now() / 1000),
    )[0]
  await expect.poll(row).toMatchObject({ attempts: 1, problem: expect.stringContaining('451 Try again later'), sent: null })
  expect(row()?.wait).toBeGreaterThan(30)
  const becomeDue = (attempts: number) =>
    changeRows(reelgate, "update mail set due_at_s = 0, problem = null, attempts = ? where cause = 'encode-failed'", attempts)
  becomeDue(6)
  await expect.poll(row).toMatchObject({ attempts: 7, problem: expect.stringContaining('451'), sent: null })

  // Given up: a mail of another cause comes through, and this one stays.
  mails.refuse()
  becomeDue(7)
  changeRows(reelgate, "insert into mail (id, day, cause, due_at_s) select 'x', day, 'backup-old', 0 from mail limit 1")
  await mails.until('The last good backup is old', 1)
  expect(await mails.until('could not be encoded', 0)).toEqual([])
  becomeDue(1)
  await mails.until('could not be encoded', 1)
  await expect.poll(row).toMatchObject({ attempts: 2, problem: null, sent: expect.any(Number) })
  const ids = (subject: string) =>
    mails.offered.flatMap((headers) =>
      headers.includes(subject) ? (/^Message-ID: (<\w+@example\.org>)$/im.exec(headers)?.[1] ?? '') : [],
    )
  expect(ids('could not be encoded')).toHaveLength(3)
  expect(new Set(ids('could not be encoded')).size).toBe(1)
  expect(ids('could not be encoded')).not.toContain(ids('The last good backup is old')[0])
})

test('a wrong setting is named, with what to do', async () => {
  const { key, cert } = makeCertificate()
  const [plain, encrypted] = [await startMailServer(), await startMailServer({ key, cert })]
  const login = await startMailServer({ authOptional: false })
  const strict = await startMailServer({
    onRcptTo: (_address, _session, done) => done(Object.assign(new Error('No such mailbox'), { responseCode: 550 })),
  })
  const check = (REELGATE_SMTP_URL: string) => {
    const { alertMail } = readConfig({ REELGATE_SMTP_URL, REELGATE_ALERT_TO: 'ann@example.org' })
    if (!alertMail) throw new Error('no e-mail')
    return checkMailServer(alertMail)
  }
  await expect(check(`smtp://127.0.0.1:${plain.port}`)).resolves.toBeUndefined()
  await expect(check(`smtp://${LOGIN}@127.0.0.1:${login.port}`)).resolves.toBeUndefined()
  const wrong = (url: string, words: RegExp) => expect(check(url), url).rejects.toThrow(words)
  await wrong('smtp://127.0.0.1:1', /^REELGATE_SMTP_URL: 127\.0\.0\.1:1 cannot be reached.*ECONNREFUSED/)
  await wrong(`smtp://127.0.0.1:${plain.port}?tls=required`, /offers no STARTTLS\. Use smtps:\/\//)
  await wrong(`smtps://127.0.0.1:${plain.port}`, /does not speak SMTP\. Check host and port, smtp:\/\/ or smtps:\/\//)
  await wrong(`smtp://127.0.0.1:${encrypted.port}?tls=required`, /the certificate of .* is not accepted.*NODE_EXTRA_CA_CERTS/)
  await wrong(`smtp://ann:secret@127.0.0.1:${login.port}`, /does not accept the user name or the password.*535 Wrong: …\)$/)
  const location = await makeLocation({ database: 'sqlite' })
  onTestFinished(() => location.remove())
  await runCli(['account', 'create', 'school'], location.env)
  expect(await runCli(['alert', 'test'], { ...location.env, ...settings(strict) })).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /does not accept a mail from .* Check REELGATE_ALERT_FROM and the recipients, such as REELGATE_ALERT_TO/,
    ),
  })
  expect(await runCli(['alert', 'test'], location.env)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^Set REELGATE_SMTP_URL and REELGATE_ALERT_TO/),
  })
})

test('a test mail is sent with and without a running server, and the command prints what the mail server answered', async () => {
  const mails = await startMailServer()
  const reelgate = await startReelgate({ env: settings(mails) })
  const running = await reelgate.cli('alert', 'test')
  expect(running).toMatchObject({ code: 0, stdout: expect.stringMatching(/^answer +250 queued as 4711$/m) })
  await reelgate.stop()
  expect(await reelgate.cli('alert', 'test', '--json')).toMatchObject({ code: 0 })
  const [first, second] = await mails.until('Test', 2)
  expect(first?.headers).toMatch(/^Subject: \[Reelgate .+\] Test$/m)
  expect(second?.to).toEqual(['ann@example.org', 'ben@example.org'])
})

test('settings of e-mail that cannot work are rejected at the start, without their password', () => {
  const to = { REELGATE_ALERT_TO: 'ann@example.org' }
  const reject = (environment: Record<string, string>, words: RegExp) => {
    expect(() => readConfig(environment), JSON.stringify(environment)).toThrow(words)
    expect(() => readConfig(environment)).not.toThrow(/hunter2/)
  }
  reject({ REELGATE_SMTP_URL: 'smtp://mail.example.org' }, /need REELGATE_SMTP_URL and REELGATE_ALERT_TO\. Set REELGATE_ALERT_TO/)
  reject(to, /Set REELGATE_SMTP_URL, the mail server/)
  for (const url of [
    'mail.example.org',
    'http://mail.example.org',
    'smtp://ann:hunter2@x@mail',
    'smtp://mail:70000',
    'smtp://m/path',
    'smtp://m?tls=never',
    'smtp://ann:hunter2%zz@m',
  ])
    reject({ ...to, REELGATE_SMTP_URL: url }, /^REELGATE_SMTP_URL is invalid: expected a URL such as smtp:/)
  reject({ ...to, REELGATE_SMTP_URL: 'smtp://ann:hunter2@mail.example.org?tls=off' }, /others on the network could read it/)
  reject({ REELGATE_SMTP_URL: 'smtp://m', REELGATE_ALERT_TO: 'ann@example.org, ben' }, /^REELGATE_ALERT_TO is invalid/)
  reject({ ...to, REELGATE_SMTP_URL: 'smtp://m', REELGATE_ALERT_FROM: 'Reelgate' }, /^REELGATE_ALERT_FROM is invalid/)
  const mailOf = (url: string) => readConfig({ ...to, REELGATE_SMTP_URL: url }).alertMail
  expect(mailOf('smtp://mail.example.org')).toMatchObject({ port: 587, security: 'starttls', login: undefined })
  expect(mailOf(`smtps://${LOGIN}@[2001:db8::1]`)).toMatchObject({
    ...{ host: '2001:db8::1', port: 465, security: 'tls', login: { user: USER, pass: PASSWORD }, from: 'ann@example.org' },
  })
  const publicly = { REELGATE_PUBLIC_URL: 'https://video.example.org', HOST: '0.0.0.0' }
  expect(readConfig({ ...to, ...publicly, REELGATE_SMTP_URL: 'smtp://m' }).alertMail?.installation).toBe('video.example.org')
  expect(mailOf('smtp://localhost')).toMatchObject({ port: 25, security: 'none' })
  expect(mailOf('smtp://relay.lan:25?tls=off')).toMatchObject({ port: 25, security: 'none' })
})

test('each cause has a subject and a remedy, and what owners and files choose adds no lines to a mail', () => {
  const alert = {
    accountName: 'School\r\nBcc: x@example.net',
    userId: 'u\u0000\n',
    videos: [{ id: 'v', title: '' }],
    occurrenceCount: 3,
  }
  for (const cause of ALERT_CAUSES) {
    const { subject, text } = writeAlertMail('video.example.org', cause, [{ ...alert, numbers: '{"reason":"a\\nb"}' }])
    expect(subject).toMatch(/^\[Reelgate video\.example\.org\] [A-Z][^\n]+[a-z]$/)
    const [first, named, remedy, list] = text.split('\n\n')
    expect(first).toContain(`(${cause})`)
    expect(named).toBe('- account School Bcc: x@example.net, viewer u , video  (v), reason a b, 3 times')
    expect(remedy).toMatch(/^[A-Z].*\S$/)
    expect(list).toContain(`reelgate alert list ACCOUNT --cause ${cause}`)
  }
  const many = Array.from({ length: 21 }, () => ({ ...alert, numbers: '{}' }))
  expect(writeAlertMail('x', 'many-places', many).text.match(/^- /gm)).toHaveLength(20)
  expect(writeAlertMail('x', 'many-places', many).text).toContain('… and more')
})
