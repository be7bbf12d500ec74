import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { getStoredSource } from '../data-folder.ts'
import { makeFilm } from '../films.ts'
import { openSharedWorld } from '../outside/world.ts'
import { startSharedReelgate } from '../reelgate.ts'

let world: Awaited<ReturnType<typeof openSharedWorld>>
let reelgate: Awaited<ReturnType<typeof startSharedReelgate>>
let film: Buffer

beforeAll(async () => {
  world = await openSharedWorld()
  reelgate = await startSharedReelgate(await world.around())
  film = await readFile(await makeFilm())
})
afterAll(async () => {
  await reelgate?.remove()
  await world?.end()
})

test('a film at an address becomes a video that plays, named after the last part of its address', async () => {
  world.names.set('films.example', ['8.8.8.1'])
  await world.site('8.8.8.1', (request, response) => response.end(request.url?.includes('Signature=5') ? film : ''))
  const { owner } = reelgate
  const answer = await owner.call('PUT', '/api/videos/importUrl', {
    body: { url: 'http://films.example/a/Lesson%201.mp4?X-Amz-Signature=5' },
  })
  const body = (await answer.json()) as { id: string }
  expect(body).toEqual({ id: expect.stringMatching(/^[0-9a-f]{32}$/), status: 'Queued', title: 'Lesson 1.mp4' })
  await owner.until(body.id, 'ready')
  expect((await getStoredSource(reelgate, body.id).clear()).equals(film)).toBe(true)
})
