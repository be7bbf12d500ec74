import { openAsBlob } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'

/** What the current interface says of a video. */
export type VideoBody = {
  id: string
  title: string
  status: string
  statusReason?: string
  length: number
  posters: { width: number; height: number; posterUrl: string }[]
  poster: string
  totalSizeBytes: number
  [field: string]: unknown
}

export type UploadCredentials = { clientPayload: Record<string, string> & { uploadLink: string }; videoId: string }

/**
 * An owner's server: speaks the current interface over HTTP as any client would.
 * @param always headers of every request
 */
export function createOwner(url: string, apiKey: string, always: Record<string, string> = {}) {
  async function call(
    method: string,
    path: string,
    options: { body?: unknown; headers?: Record<string, string>; signal?: AbortSignal } = {},
  ) {
    return fetch(`${url}${path}`, {
      method,
      signal: options.signal,
      headers: {
        Authorization: `Apisecret ${apiKey}`,
        Accept: 'application/json',
        'Content-Type': 'application/json',
        ...always,
        ...options.headers,
      },
      body: options.body === undefined ? undefined : JSON.stringify(options.body),
    })
  }

  async function get<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await call(method, path, { body })
    if (response.status !== 200) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
    return response.json() as Promise<T>
  }

  const credentials = (title: string) => get<UploadCredentials>('PUT', `/api/videos?title=${encodeURIComponent(title)}`)

  async function send(upload: UploadCredentials, file: Blob, name = 'video.mp4'): Promise<Response> {
    return postForm(upload.clientPayload.uploadLink, uploadForm(upload, file, name), always)
  }

  async function upload(title: string, path: string): Promise<string> {
    const issued = await credentials(title)
    const response = await send(issued, await openAsBlob(path))
    if (response.status !== 201) throw new Error(`upload: ${response.status} ${await response.text()}`)
    return issued.videoId
  }

  const video = (id: string) => get<VideoBody>('GET', `/api/videos/${id}`)

  /** Asks until the video's status is one of these. */
  async function until(id: string, ...statuses: string[]): Promise<VideoBody> {
    for (;;) {
      const found = await video(id)
      if (statuses.includes(found.status)) return found
      if (/error|Not/.test(found.status)) throw new Error(`${found.title}: ${found.status}: ${found.statusReason}`)
      await pause(100)
    }
  }

  return {
    url,
    apiKey,
    call,
    credentials,
    send,
    upload,
    video,
    until,
    list: (query = '') => get<{ count: number; rows: VideoBody[] }>('GET', `/api/videos${query}`),
    delete: (ids: string[]) => get<{ code: number; message: string }>('DELETE', `/api/videos?videos=${ids.join(',')}`),
    async readyVideo(path: string, title = 'A video'): Promise<string> {
      const id = await upload(title, path)
      await until(id, 'ready')
      return id
    },
    async issueOtp(videoId: string, options: Record<string, unknown> = {}): Promise<string> {
      return (await get<{ otp: string }>('POST', `/api/videos/${videoId}/otp`, options)).otp
    },
  }
}

export type Owner = ReturnType<typeof createOwner>

/** Shorter than a test may take, so that it fails with the request that had no answer. */
const LONGEST_ANSWER_MS = 240_000

/** A call that hung; where a connection ends without an answer, `fetch` throws an error of its own. */
export class NoAnswer extends Error {}

/**
 * Sends a form as its bytes. As an object `fetch` reads it piece by piece, and may wait for ever when the server is killed meanwhile.
 * @throws NoAnswer after four minutes
 */
export async function postForm(url: string, form: FormData, headers: Record<string, string> = {}): Promise<Response> {
  const encoded = new Response(form)
  const contentType = encoded.headers.get('Content-Type') ?? ''
  return post(url, { headers: { ...headers, 'Content-Type': contentType }, body: await encoded.arrayBuffer() })
}

/** @throws NoAnswer after four minutes */
export async function post(url: string, request: RequestInit): Promise<Response> {
  const signal = AbortSignal.timeout(LONGEST_ANSWER_MS)
  return fetch(url, { method: 'POST', ...request, signal }).catch((error) => {
    throw signal.aborted ? new NoAnswer(`POST ${url} had no answer for ${LONGEST_ANSWER_MS / 1000} s`) : error
  })
}

/** The form that an upload's credentials stand for, the file last. */
export function uploadForm(upload: UploadCredentials, file: Blob, name: string): FormData {
  const { uploadLink: _, ...fields } = upload.clientPayload
  const form = new FormData()
  for (const [field, value] of Object.entries(fields)) form.append(field, value)
  form.append('success_action_status', '201')
  form.append('success_action_redirect', '')
  form.append('file', file, name)
  return form
}
