import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { newFolder } from '../encode/videos.ts'
import { startReelgate } from '../reelgate.ts'

test('F-102: with HOST=localhost requests sent ahead wait at each address of that name, and a stop ends all connections', async () => {
  const folder = await newFolder()
  await writeFile(join(folder, 'hosts'), '127.0.0.1 localhost\n::1 localhost\n')
  const wrapper = ['unshare', '--mount', 'sh', '-c', 'mount --bind "$0" /etc/hosts && exec "$@"', join(folder, 'hosts')]
  const { url, owner, stop } = await startReelgate({ env: { HOST: 'localhost' }, wrapper })
  const head = `HTTP/1.1\r\nHost: x\r\nAuthorization: Apisecret ${owner.apiKey}\r\n\r\n`
  for (const host of ['127.0.0.1', '::1']) {
    const socket = connect({ host, port: Number(new URL(url).port) })
    socket.on('error', () => undefined) // of the stop
    onTestFinished(() => void socket.destroy())
    // A stream of events, which does not end.
    socket.write(`GET /api/events ${head}${`PUT /api/videos?title=a ${head}`.repeat(10)}`)
    expect(String(await once(socket, 'data'))).toMatch(/^HTTP\/1\.1 200/)
    for (let asked = 0; asked < 20; asked++) expect((await owner.list()).count).toBe(0)
  }
  expect(await stop()).toBe(0)
})
