import { expect, test } from 'vitest'
import { startReelgate } from '../reelgate.ts'
import { makeVideo } from '../videos.ts'
import { openWorld } from './network-namespace.ts'

// The world that other tests trust: what it says is out of reach must be so, and a canary must be able to hear.

test('a server in a world asks the sites of that world by their names, and its canaries hear who dials them', async () => {
  const world = await openWorld()
  const asked: string[] = []
  await world.site('8.8.8.8', (request, response) => {
    asked.push(`${request.headers.host}${request.url}`)
    response.writeHead(404).end()
  })
  await world.site('2a00:1450::8', (request, response) => {
    asked.push(`${request.headers.host}${request.url}`)
    response.writeHead(404).end()
  })
  world.names.set('pictures.example', ['8.8.8.8'])
  world.names.set('six.example', ['2a00:1450::8'])
  const canaries = await world.canaries('10.0.0.7#80', 'fd00::7#80')
  const reelgate = await startReelgate(await world.around({ REELGATE_OUTBOUND_ALLOW: '10.0.0.7:80,[fd00::7]:80' }))
  const { owner } = reelgate
  const videoId = await owner.upload('A video', await makeVideo())
  const hosts = ['pictures.example', 'six.example', '10.0.0.7', '[fd00::7]']
  await owner.issueOtp(videoId, { annotate: hosts.map((host) => ({ type: 'image', url: `http://${host}/a.png` })) })
  await expect.poll(() => asked.toSorted()).toEqual(['pictures.example/a.png', 'six.example/a.png'])
  await expect.poll(() => canaries.received().toSorted()).toEqual(['10.0.0.7:80', '[fd00::7]:80'])
  expect(world.asked().map(({ name }) => name)).toContain('pictures.example')
  expect(await reelgate.stop()).toBe(0)
})
