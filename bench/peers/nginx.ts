import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Scope } from '../row.ts'
import { startPeer } from '../service.ts'

/** The machine's own, or the one that scripts/prepare.js unpacks so that none is installed that serves by itself. */
const PROGRAMS = ['/usr/sbin/nginx', join(import.meta.dirname, '../../.cache/nginx/usr/sbin/nginx')]

/** nginx as one would put it in front of keys that lie in files: it asks a program whether each request may have one. */
export async function startNginx(scope: Scope): Promise<{ url: string }> {
  const folder = join(scope.folder, 'nginx')
  await mkdir(join(folder, 'www'), { recursive: true })
  await writeFile(join(folder, 'www/key'), Buffer.alloc(16, 7))
  const allow = await startPeer(scope, 'allow.ts')
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  await writeFile(join(folder, 'nginx.conf'), configuration(folder, port, new URL(allow.url).host))
  const args = ['-p', folder, '-c', join(folder, 'nginx.conf'), '-e', join(folder, 'error.log')]
  const child = spawn(PROGRAMS.find((path) => existsSync(path)) ?? 'nginx', args, { stdio: 'inherit' })
  const ended = once(child, 'exit')
  scope.defer(async () => {
    child.kill('SIGTERM')
    await ended
  })
  for (let tries = 0; tries < 100; tries++) {
    const answer = await fetch(`${url}/play/s/key/0`).catch(() => undefined)
    if (answer?.status === 200) return { url }
    await pause(50)
  }
  throw new Error('nginx did not start')
}

const configuration = (folder: string, port: number, allow: string) => `
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
  upstream allow { server ${allow}; keepalive 64; }
  server {
    listen 127.0.0.1:${port};
    location /play/ { auth_request /allow; root ${folder}/www; try_files /key =404; }
    location = /allow {
      internal;
      proxy_pass http://allow;
      proxy_pass_request_body off;
      proxy_set_header Content-Length "";
      proxy_http_version 1.1;
      proxy_set_header Connection "";
    }
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
