import { readFileSync } from 'node:fs'
import { SMTPServer } from 'smtp-server'

// A program: a mail server on port 587 that demands STARTTLS and a password, and prints the mails that it gets.
// Arguments: the files of its key and of its certificate.

const [key = '', certificate = ''] = process.argv.slice(2)

new SMTPServer({
  key: readFileSync(key),
  cert: readFileSync(certificate),
  disableReverseLookup: true,
  onAuth: ({ username, password }, _session, done) =>
    username === 'USER' && password === 'PASSWORD' ? done(null, { user: username }) : done(new Error('Wrong password')),
  onData(stream, _session, done) {
    stream.pipe(process.stdout, { end: false })
    stream.once('end', () => done(null, 'queued as 4711'))
  },
}).listen(587, '127.0.0.1', () => process.stdout.write('listening\n'))
