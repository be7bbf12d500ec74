import { connection } from './connection.ts'
import { isGatewayStatus, sentenceOfProxy } from './proxy-refusal.ts'
import { apiUrl } from './urls.ts'

/** An answer that is no success, in words for the person who looks at the page. */
export class ApiFailure extends Error {
  /** 0: there was no answer. */
  readonly status: number
  /** The API's word, such as `not-found`. */
  readonly code: string
  readonly retryAfterS: number | undefined

  constructor(message: string, { status, code, retryAfterS }: { status: number; code: string; retryAfterS?: number }) {
    super(message)
    this.status = status
    this.code = code
    this.retryAfterS = retryAfterS
  }
}

/** Whether the same call may succeed a moment later: no answer, too many calls, or a server that is not ready. */
export function mayPass({ status }: ApiFailure): boolean {
  return status === 0 || status === 429 || status >= 502
}

type Query = Readonly<Record<string, string | number | undefined>>
type Call = {
  query?: Query
  body?: unknown
  form?: FormData
  signal?: AbortSignal
  /** Makes a call that may be sent again have one effect, where the operation takes it. */
  idempotencyKey?: string
}

/**
 * Calls an operation of the API, such as `callApi<VideoBody>('GET', 'videos/ID')`. Query parameters that are empty or undefined are left out.
 * @throws ApiFailure
 */
export async function callApi<Reply>(method: string, path: string, call: Call = {}): Promise<Reply> {
  const response = await send(method, path, call)
  if (response.ok) return response.json()
  const failure = await readFailure(response)
  if (failure.code !== 'sign-in-again' || !(await signInAgain())) throw failure
  const repeated = await send(method, path, call)
  if (!repeated.ok) throw await readFailure(repeated)
  return repeated.json()
}

let signInAgain = async () => false

/** @param ask asks the person to sign in again, for a call that needs a recent sign-in; false: they did not @returns ends it */
export function onSignInAgain(ask: () => Promise<boolean>): () => void {
  signInAgain = ask
  return () => {
    signInAgain = async () => false
  }
}

/** A page of a list, and the cursor of the next one where there is one. @throws ApiFailure */
export async function callApiForPage<Reply>(path: string, call: Call = {}): Promise<Reply & { after: string | undefined }> {
  const response = await send('GET', path, call)
  if (!response.ok) throw await readFailure(response)
  const [, next = ''] = /<([^>]+)>; rel="next"/.exec(response.headers.get('Link') ?? '') ?? []
  const reply: Reply = await response.json()
  return { ...reply, after: next === '' ? undefined : (new URL(next, location.href).searchParams.get('after') ?? undefined) }
}

/** Sends a file as the form that an operation such as `POST videos/ID/files` takes. @throws ApiFailure */
export async function sendForm<Reply>(path: string, file: Blob, query: Query = {}): Promise<Reply> {
  const form = new FormData()
  form.set('file', file, file instanceof File ? file.name : 'file')
  const response = await send('POST', path, { query, form })
  if (!response.ok) throw await readFailure(response, file.size)
  return response.json()
}

/** Where a list of the API is a CSV file with all its rows. */
export function csvUrl(path: string, query: Query = {}): string {
  return urlWithQuery(path, { ...query, format: 'csv' }).href
}

async function send(method: string, path: string, { query = {}, body, form, signal, idempotencyKey }: Call): Promise<Response> {
  const url = urlWithQuery(path, query)
  const headers = {
    ...(method === 'GET' ? {} : { 'Reelgate-Console': '1' }), // other sites' pages cannot send it
    ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
    ...(idempotencyKey === undefined ? {} : { 'Idempotency-Key': idempotencyKey }),
  }
  try {
    const response = await fetch(url, { method, headers, body: body === undefined ? form : JSON.stringify(body), signal })
    if (!isGatewayStatus(response.status)) connection.found()
    return response
  } catch (cause) {
    if (signal?.aborted) throw cause
    throw unreachable()
  }
}

/** The failure of a call that got no answer. */
export function unreachable(): ApiFailure {
  connection.lost()
  const sentence = 'The server cannot be reached. Check your connection, and that Reelgate is running.'
  return new ApiFailure(sentence, { status: 0, code: 'unreachable' })
}

function urlWithQuery(path: string, query: Query): URL {
  const url = apiUrl(path)
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== '') url.searchParams.set(name, `${value}`)
  return url
}

/** @param sentBytes how large the body of the call was, where a proxy may have refused it */
export async function readFailure(response: Response, sentBytes?: number): Promise<ApiFailure> {
  const { status, headers } = response
  const retryAfterS = Number(headers.get('Retry-After')) || undefined
  const { message, code = 'unknown' }: { message?: string; code?: string } = await response.json().catch(() => ({}))
  if (message !== undefined) return new ApiFailure(message, { status, code, retryAfterS })
  if (isGatewayStatus(status)) connection.lost()
  return new ApiFailure(sentenceOfProxy({ status, server: headers.get('Server'), sentBytes }), { status, code, retryAfterS })
}
