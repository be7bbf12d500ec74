import type { AudioTracksBody } from '../../../src/http/api/audio.ts'
import { readFailure, unreachable } from '../api.ts'
import { apiUrl } from '../urls.ts'

type NewTrack = { videoId: string; file: File; language: string; name: string; isDefault: boolean }

/** Adds an audio track. Not by `fetch`, which does not say how much has been sent. @param onProgress how much, from 0 to 1 @throws ApiFailure */
export function sendAudio(track: NewTrack, onProgress: (part: number) => void): Promise<AudioTracksBody> {
  const { videoId, file, language, name, isDefault } = track
  const url = apiUrl(`videos/${videoId}/audio`)
  url.search = new URLSearchParams({ language, ...(name !== '' && { name }), ...(isDefault && { default: 'true' }) }).toString()
  const form = new FormData()
  form.set('file', file, file.name)
  const request = new XMLHttpRequest()
  return new Promise((resolve, reject) => {
    request.upload.onprogress = ({ loaded, total }) => onProgress(loaded / Math.max(1, total))
    request.onerror = () => reject(unreachable())
    request.onload = () => {
      const { status, responseText } = request
      if (status === 200) return resolve(JSON.parse(responseText))
      const headers = {
        Server: request.getResponseHeader('Server') ?? '',
        'Retry-After': request.getResponseHeader('Retry-After') ?? '',
      }
      void readFailure(new Response(responseText, { status, headers }), file.size).then(reject)
    }
    request.open('POST', url)
    request.setRequestHeader('Reelgate-Console', '1') // other sites' pages cannot send it
    request.send(form)
  })
}
