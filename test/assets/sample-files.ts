import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { type Owner, postForm } from '../client.ts'
import { makeVideo } from '../videos.ts'

/** Of two renditions and five segments: files share one golden installation of it. */
export const makeLongVideo = () => makeVideo({ seconds: 20, size: '640x360', rate: 10 })

export type FileBody = {
  id: number
  name: string
  size: number
  type: string
  enabled: number
  width: number
  height: number
  lang: string
  isDownloadable: number
  isDeletable: number
  [field: string]: unknown
}

/** A picture as ffmpeg draws it. @param format such as `png`, `mjpeg`, `libwebp` */
export async function makeImage(size: string, format = 'png', color = 'red'): Promise<Buffer> {
  const args = ['-v', 'error', '-f', 'lavfi', '-i', `color=${color}:s=${size}`, '-frames:v', '1', '-c:v', format]
  const end = ['-f', format === 'libwebp' ? 'webp' : 'image2pipe', '-']
  const { stdout } = await promisify(execFile)('ffmpeg', [...args, ...end], { encoding: 'buffer', maxBuffer: 2 ** 28 })
  return stdout
}

/** The pixels of a picture's middle, as RGB. */
export async function colorOf(image: Buffer): Promise<number[]> {
  const run = promisify(execFile)(
    'ffmpeg',
    [...'-v error -i - -vf scale=1:1:flags=area -f rawvideo -pix_fmt rgb24 -'.split(' ')],
    {
      encoding: 'buffer',
    },
  )
  run.child.stdin?.end(image)
  return [...(await run).stdout]
}

/** Adds a poster, or captions in a language, as any client would. */
export async function addFile(owner: Owner, videoId: string, bytes: string | Buffer, language?: string): Promise<Response> {
  const form = new FormData()
  form.append('file', new Blob([Buffer.from(bytes)]), language === undefined ? 'picture.png' : 'captions.srt')
  const url = `${owner.url}/api/videos/${videoId}/files${language === undefined ? '' : `?language=${language}`}`
  return postForm(url, form, { Authorization: `Apisecret ${owner.apiKey}` })
}

export async function listFiles(owner: Owner, videoId: string): Promise<FileBody[]> {
  const response = await owner.call('GET', `/api/videos/${videoId}/files`)
  if (response.status !== 200) throw new Error(`files: ${response.status} ${await response.text()}`)
  return (await response.json()) as FileBody[]
}

export const SRT = '1\r\n00:00:00,500 --> 00:00:02,500\r\nA first <b>line</b> & more\r\n'
