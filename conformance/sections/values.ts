import { check, type Section } from '../check.ts'
import { Deviation, expectAnswer, expectValue } from '../expect.ts'
import { anyText, differences, exactly, is, isRecord, otp, positive, sentence, unixSeconds, videoId } from '../shape.ts'
import { VIDEO } from '../test-video.ts'

const IN_ORDER = ['PRE-Upload', 'Queued', 'Processing', 'ready']

export const values: Section = {
  section: 1,
  title: 'Values',
  checks: [
    check('an API secret is 64 letters and digits', async (at) => {
      expectValue(at.key, otp, '--key')
    }),
    check('one secret serves both interfaces', async (at) => {
      expectAnswer(await at.api('GET', '/videos'), { status: 200 })
      expectAnswer(await at.v2('/videos'), { status: 200 })
    }),
    check('a video id is 32 lower-case hexadecimal digits', async (at) => {
      expectValue((await at.credentials()).videoId, videoId, 'videoId')
    }),
    check('an OTP is 64 letters and digits', async (at) => {
      expectAnswer(await at.api('POST', `/videos/${await at.sharedEmptyVideo()}/otp`), { status: 200, body: { otp } })
    }),
    check('a hundred OTPs are all different', async (at) => {
      const path = `/videos/${await at.sharedEmptyVideo()}/otp`
      const seen = new Set<unknown>()
      for (let n = 0; n < 100; n++) seen.add(getBody(await at.api('POST', path)).otp)
      expectValue(seen.size, 100, 'different OTPs')
    }),
    check('playbackInfo is standard base64 of {"videoId":"…"}, that single key', async (at) => {
      const id = await at.sharedEmptyVideo()
      const { playbackInfo } = getBody(await at.api('POST', `/videos/${id}/otp`))
      expectValue(playbackInfo, Buffer.from(`{"videoId":"${id}"}`).toString('base64'), 'playbackInfo')
    }),
    check('upload_time and date_added are Unix seconds, and the same', async (at) => {
      const id = await at.sharedEmptyVideo()
      const { upload_time } = await at.video(id)
      expectValue(upload_time, unixSeconds, 'upload_time')
      const entity = await at.v2(`/video?id=${id}`)
      expectAnswer(entity, {
        status: 200,
        body: { date_added: is(`upload_time, ${upload_time}`, (value) => value === upload_time) },
      })
    }),
    check('length is in seconds; the earlier interface has a whole number, at least 1', async (at) => {
      const id = await at.sharedReadyVideo()
      expectValue(
        (await at.video(id)).length,
        is('about 2', (value) => Math.abs(Number(value) - 2) < 0.5),
        'length',
      )
      expectAnswer(await at.v2(`/video?id=${id}`), { status: 200, body: { length: positive } })
    }),
    check('status goes PRE-Upload → Queued → Processing → ready, and never back', async (at) => {
      const issued = await at.credentials()
      const seen = [(await at.video(issued.videoId)).status]
      expectValue(seen[0], 'PRE-Upload', 'status before the upload')
      expectAnswer(await at.upload(issued, undefined, VIDEO), { status: 201 })
      await at.until(
        'ready',
        async () => seen.push((await at.video(issued.videoId)).status),
        () => seen.at(-1) === 'ready',
      )
      const locations = seen.map((status) => IN_ORDER.indexOf(String(status)))
      if (locations.includes(-1) || locations.some((location, index) => location < (locations[index - 1] ?? 0)))
        throw new Deviation(`status: expected ${IN_ORDER.join(' → ')}, got ${[...new Set(seen)].join(' → ')}`)
    }),
    check('bytes that are no video end as "Not a media file", with a reason', async (at) => {
      expectValue((await at.video(await at.nonMediaVideo())).statusReason, sentence, 'statusReason')
    }),
    check('statusText is queued, processing or ready; a failure is processing with an error', async (at) => {
      expectAnswer(await at.v2(`/video?id=${await at.sharedEmptyVideo()}`), { status: 200, body: { statusText: 'queued' } })
      expectAnswer(await at.v2(`/video?id=${await at.sharedReadyVideo()}`), { status: 200, body: { statusText: 'ready' } })
      expectAnswer(await at.v2(`/video?id=${await at.nonMediaVideo()}`), {
        status: 200,
        body: { statusText: 'processing', error: sentence },
      })
    }),
    check(
      'a key with the permission viewer reads',
      async (at) => {
        expectAnswer(await at.api('GET', '/videos', { key: at.viewerKey }), { status: 200 })
        expectAnswer(await at.v2('/videos', {}, at.viewerKey), { status: 200 })
      },
      'permission-keys',
    ),
    check('an OTP answer has these two fields and no other', async (at) => {
      const answer = await at.api('POST', `/videos/${await at.sharedEmptyVideo()}/otp`)
      expectAnswer(answer, { status: 200, body: exactly({ otp, playbackInfo: anyText }) })
    }),
  ],
}

/** @throws Deviation when it is no object */
function getBody({ body }: { body: unknown }): Record<string, unknown> {
  if (!isRecord(body)) throw new Deviation(differences(body, is('an object', isRecord), 'body').join())
  return body
}
