import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Owner } from '../client.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { type Receivers, startReceivers, webhooksOf } from '../webhooks/receiver.ts'
import { createTusClient } from './tus-client.ts'

// `duplicateOf`: docs/videos.md, "The same file again".

let receivers: Receivers
let reelgate: Reelgate & { remove(): Promise<void> }
beforeAll(async () => {
  receivers = await startReceivers()
  reelgate = await startSharedReelgate({ env: { REELGATE_OUTBOUND_ALLOW: receivers.host } })
})
afterAll(async () => {
  await reelgate.remove()
  await receivers.close()
})

/** A file that is none: nothing is encoded. */
async function upload(owner: Owner, text: string): Promise<string> {
  const credentials = await owner.credentials('A video')
  expect((await owner.send(credentials, new Blob([text]))).status).toBe(201)
  await owner.until(credentials.videoId, 'Not a media file')
  return credentials.videoId
}
const duplicateOf = async (owner: Owner, id: string) => (await owner.video(id)).duplicateOf

test('X52: the same bytes sent again name the oldest video that has them, in the list, the video and the webhook', async () => {
  const owner = await reelgate.newOwner('sends twice')
  const receiver = receivers.newReceiver()
  await webhooksOf(owner).create(receiver.url)
  const first = await upload(owner, 'same')
  const other = await upload(owner, 'other')
  const second = await upload(owner, 'same')
  const tus = createTusClient(owner)
  const third = await tus.create(4)
  await tus.patch(third.address, 0, 'same')
  await owner.until(third.videoId, 'Not a media file')
  expect((await owner.list()).rows.map(({ id, duplicateOf }) => [id, duplicateOf])).toEqual([
    [third.videoId, first],
    [second, first],
    [other, undefined],
    [first, undefined],
  ])
  const payloads = new Map((await receiver.until(4)).map(({ event }) => [event.payload.id, event.payload]))
  expect([first, second, third.videoId].map((id) => payloads.get(id)?.duplicateOf)).toEqual([undefined, first, first])

  await owner.delete([first])
  expect(await duplicateOf(owner, second)).toBeUndefined()
  expect(await duplicateOf(owner, await upload(owner, 'same'))).toBe(second)
})

test('X52: the bytes of another account’s video are no duplicate', async () => {
  await upload(await reelgate.newOwner('one'), 'of one account')
  const another = await reelgate.newOwner('another')
  expect(await duplicateOf(another, await upload(another, 'of one account'))).toBeUndefined()
})
