/** H.264 encoders of graphics cards, as ffmpeg names them. */
export const HARDWARE_NAMES = ['h264_nvenc', 'h264_qsv', 'h264_vaapi'] as const
export type HardwareName = (typeof HARDWARE_NAMES)[number]
