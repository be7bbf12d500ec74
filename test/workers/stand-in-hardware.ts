import type { Hardware } from '../../src/encode/hardware.ts'

// No graphics card is there: x264 in its place, called as one, with all that a driver may write.

export const CARD: Hardware = {
  codec: 'libx264',
  deviceArgs: [],
  filters: ['format=nv12'],
  rateArgs: (max) => [
    ...[
      '-preset',
      'veryfast',
      '-b:v',
      String(max / 2),
      '-maxrate',
      String(max),
      '-bufsize',
      String(2 * max),
      '-sc_threshold',
      '0',
    ],
    ...['-x264-params', 'aud=1:repeat-headers=1:nal-hrd=vbr'],
  ],
}

/** One that encodes no picture of less than 300 pixels. */
export const tooLarge: Hardware = { ...CARD, filters: ['crop=w=max(iw\\,300):h=ih', 'format=nv12'] }

/** One whose device is not there any more. */
export const lost: Hardware = { ...CARD, deviceArgs: ['-init_hw_device', 'vaapi=card:/nonexistent'] }
