import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Scope } from '../row.ts'
import { startPeer } from '../service.ts'

/** The installed one, or the one that scripts/prepare.js unpacks because an installed one would start by itself. */
const PROGRAMS = ['/usr/sbin/nginx', join(import.meta.dirname, '../../.cache/nginx/usr/sbin/nginx')]

export function findNginx(): string {
  return PROGRAMS.find((path) => existsSync(path)) ?? 'nginx'
}

/** nginx in front of keys in files: auth_request asks a program about each request. */
export async function startNginx(scope: Scope): Promise<{ url: string }> {
  const www = join(scope.folder, 'www')
  await mkdir(www, { recursive: true })
  await writeFile(join(www, 'key'), Buffer.alloc(16, 7))
  const allow = await startPeer(scope, 'allow.ts')
  return serve(scope, new URL(allow.url).host, '/play/s/key/0', KEY_LOCATIONS.replace('WWW', www))
}

/** nginx in front of the service, which asks it to send segments, and of the same files without the service. */
export async function startSegmentNginx(scope: Scope, serviceUrl: string, segments: string): Promise<{ url: string }> {
  const locations = SEGMENT_LOCATIONS.replaceAll('SEGMENTS', segments)
  return serve(scope, new URL(serviceUrl).host, '/healthz', locations)
}

async function serve(scope: Scope, behind: string, readyPath: string, locations: string): Promise<{ url: string }> {
  const folder = join(scope.folder, 'nginx')
  await mkdir(folder, { recursive: true })
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  await writeFile(join(folder, 'nginx.conf'), configuration({ folder, port, behind, locations }))
  scope.defer(await runNginx(folder, url + readyPath))
  return { url }
}

/**
 * Starts nginx with the `nginx.conf` of a folder; resolves once `url` returns 200.
 * @returns a function that stops it
 * @throws Error with its log, when it exits first
 */
export async function runNginx(folder: string, url: string): Promise<() => Promise<void>> {
  const log = join(folder, 'error.log')
  const args = ['-p', folder, '-c', join(folder, 'nginx.conf'), '-e', log]
  // It inherits no streams: otherwise a reader of our output would also wait for nginx to end.
  const child = spawn(findNginx(), args, { stdio: 'ignore' })
  const ended = once(child, 'exit')
  const isUp = () =>
    fetch(url).then(
      ({ status }) => status === 200,
      () => false,
    )
  while (!(await isUp())) {
    if (child.exitCode !== null) throw new Error(`nginx did not start: ${await readFile(log, 'utf8')}`)
    await pause(50)
  }
  return async () => {
    child.kill('SIGTERM')
    await ended
  }
}

const KEY_LOCATIONS = `
    location /play/ { auth_request /allow; root WWW; try_files /key =404; }
    location = /allow {
      internal;
      proxy_pass http://behind;
      proxy_pass_request_body off;
      proxy_set_header Content-Length "";
    }`
const SEGMENT_LOCATIONS = `
    location / { proxy_pass http://behind; }
    location /segments/ { internal; alias SEGMENTS/; sendfile on; }
    location /static/ { alias SEGMENTS/; sendfile on; default_type video/iso.segment; }`

type Served = { folder: string; port: number; behind: string; locations: string }
const configuration = ({ folder, port, behind, locations }: Served) => `
${process.getuid?.() === 0 ? 'user root;' : ''}
daemon off;
worker_processes auto;
pid ${folder}/pid;
events { worker_connections 1024; }
http {
  access_log off;
  keepalive_requests 1000000;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi; uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;
  upstream behind { server ${behind}; keepalive 64; }
  server {
    listen 127.0.0.1:${port};
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    ${locations}
  }
}
`

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  if (address === null || typeof address === 'string') throw new Error('no free port')
  return address.port
}
