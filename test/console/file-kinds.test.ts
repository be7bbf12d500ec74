import { expect, test } from 'vitest'
import { whyNoVideo } from '../../web/upload/file-kinds.ts'

test('I-20: a file in a container that is not read is refused by its name, before it is sent', async () => {
  for (const name of ['Tape.dv', 'Raw.h264', 'Moving.gif', 'Old.RM'])
    expect(await whyNoVideo(new File(['a video'], name, { type: 'video/x-any' }))).toContain('convert it to MP4')
  expect(await whyNoVideo(new File(['\0\0\0\x18ftypmp42'], 'Lesson.mp4', { type: 'video/mp4' }))).toBeUndefined()
})
