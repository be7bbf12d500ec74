import { expect, test } from 'vitest'
import { HARDWARE } from '../../src/encode/hardware.ts'
import { tryEncoder } from '../../src/workers/client/try-hardware.ts'
import { openDefaultSandbox } from '../encode/videos.ts'
import { CARD, lost } from './stand-in-hardware.ts'

// The encoder of a graphics card is tried when a worker starts.

const tried = async (...[hardware, device]: [typeof CARD, { folder: string; named: string }?]) =>
  tryEncoder(await openDefaultSandbox(), hardware, device)

test('J36: without the encoder in ffmpeg, the device or its driver a worker does not start, and says which', async () => {
  const { h264_nvenc } = HARDWARE
  await expect(tried({ ...h264_nvenc, codec: 'h264_none' })).rejects.toThrow(
    '--encoder h264_none: the ffmpeg of this machine was',
  )
  await expect(tried(CARD, { folder: '/dev/none', named: 'renderD' })).rejects.toThrow('no device /dev/none/renderD…')
  await expect(tried(lost)).rejects.toThrow('does not encode on this machine: [AVHWDeviceContext]')
})

test('J36: an encoder that writes what servers refuse does not start, and is not suspended later', async () => {
  const { rateArgs } = CARD
  const changed = (...args: string[]) => ({ ...CARD, rateArgs: (max: number) => [...rateArgs(max), ...args] })
  await expect(tried({ ...CARD, filters: ['setparams=colorspace=bt470bg'] })).rejects.toThrow('servers would refuse')
  await expect(tried(changed('-force_key_frames', 'expr:eq(n,3)'))).rejects.toThrow('at each key frame')
})
