import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runNginx } from '../bench/peers/nginx.ts'
import { findFreePort } from './free-port.ts'

/** Lines of nginx's configuration: of its block `http`, of its only server, and of the `location /` of that. */
export type NginxLines = { http?: string; server?: string; location: string }

/** Debian's nginx in front of a server. @param linesFor gets a folder that it may write to */
export async function startNginx(linesFor: (folder: string) => NginxLines): Promise<{ url: string; remove(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'reelgate-nginx-'))
  const port = await findFreePort()
  const ofItsOwn = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${folder}/${kind};`)
  const { http = '', server = '', location } = linesFor(folder)
  await writeFile(
    join(folder, 'nginx.conf'),
    `daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error.log error;
     events {}
     http {
       access_log off;
       ${ofItsOwn.join('\n')}
       ${http}
       server {
         listen 127.0.0.1:${port};
         ${server}
         location / {
           ${location}
         }
       }
     }`,
  )
  const url = `http://127.0.0.1:${port}`
  const stop = await runNginx(folder, `${url}/healthz`)
  return {
    url,
    async remove() {
      await stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
