// What an embedding site's own server does: it serves the page in plain/, and an OTP for each viewer who opens it. Needs Node 20 or newer.
// REELGATE_SECRET=… VIDEO_ID=… node examples/server.js
// REELGATE is Reelgate's address, http://127.0.0.1:8080 without it; PORT is this server's, 3000 without it.
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'

const { REELGATE = 'http://127.0.0.1:8080', REELGATE_SECRET, VIDEO_ID, PORT = '3000' } = process.env
const FILES = { '/': ['index.html', 'text/html'], '/lesson.js': ['lesson.js', 'text/javascript'] }

createServer(async (request, response) => {
  const { pathname } = new URL(request.url, 'http://site.invalid')
  if (request.method === 'POST' && pathname === '/otp') return sendOtp(response)
  if (!Object.hasOwn(FILES, pathname)) return response.writeHead(404).end()
  const [file, type] = FILES[pathname]
  const text = await readFile(new URL(`plain/${file}`, import.meta.url), 'utf8')
  // The same for every visitor, so it may be kept by every cache.
  response.writeHead(200, { 'Content-Type': `${type}; charset=utf-8`, 'Cache-Control': 'public, max-age=300' })
  response.end(text.replaceAll('https://video.example.org', REELGATE))
}).listen(Number(PORT), '127.0.0.1', function () {
  console.log(`http://localhost:${this.address().port}/`)
})

/** A real site first checks who asks, and what they may watch. The secret never leaves this server. */
async function sendOtp(response) {
  const answer = await fetch(`${REELGATE}/api/videos/${VIDEO_ID}/otp`, {
    method: 'POST',
    headers: { Authorization: `Apisecret ${REELGATE_SECRET}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ ttl: 300, userId: 'reader-4711' }),
  })
  if (!answer.ok) console.error(await answer.text())
  // An OTP is one viewer's: no cache keeps it.
  response.writeHead(answer.ok ? 200 : 502, { 'Content-Type': 'application/json', 'Cache-Control': 'private, no-store' })
  response.end(answer.ok ? await answer.text() : '{}')
}
