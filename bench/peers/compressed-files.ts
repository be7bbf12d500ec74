// Plain Node that sends the files of a folder; scripts, styles and pages compressed beforehand. Argument: the folder.
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join, relative } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.m3u8': 'application/vnd.apple.mpegurl',
}
const [folder = ''] = process.argv.slice(2)

const files = new Map(
  filesIn(folder).map((name) => {
    const bytes = readFileSync(join(folder, name))
    const type = TYPES[extname(name)]
    return [`/${name}`, type ? { type, bytes, br: brotliCompressSync(bytes), gzip: gzipSync(bytes, { level: 9 }) } : { bytes }]
  }),
)

function filesIn(path: string): string[] {
  const entries = readdirSync(path, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => relative(path, join(entry.parentPath, entry.name)))
}

const server = createServer((request, response) => {
  const file = files.get(request.url ?? '')
  if (!file) return response.writeHead(404).end()
  if (!file.type) return response.writeHead(200, { 'Content-Type': 'application/octet-stream' }).end(file.bytes)
  const coding = /\bbr\b/.test(request.headers['accept-encoding'] ?? '') ? 'br' : 'gzip'
  return response.writeHead(200, { 'Content-Type': file.type, 'Content-Encoding': coding }).end(file[coding])
})
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
