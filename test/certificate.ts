import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/**
 * A certificate of twenty days that only its own file vouches for. The files are removed when the test has finished.
 * @param names as `DNS:video.example.org`
 */
export function makeCertificate(names = 'IP:127.0.0.1,DNS:localhost', days = 20) {
  const folder = mkdtempSync(join(tmpdir(), 'reelgate-tls-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return writeCertificate(folder, names, days)
}

/** The same in a folder of the caller's. @param env of the program that makes it, such as another clock */
export function writeCertificate(folder: string, names: string, days = 20, env: Record<string, string> = {}) {
  const [keyFile, file] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')]
  const output = ['-keyout', keyFile, '-out', file, '-days', String(days)]
  const subject = ['-subj', '/CN=localhost', '-addext', `subjectAltName=${names}`]
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  execFileSync('openssl', ['req', '-x509', ...key, ...output, ...subject], { stdio: 'ignore', env: { ...process.env, ...env } })
  return { file, keyFile, key: readFileSync(keyFile), cert: readFileSync(file) }
}
