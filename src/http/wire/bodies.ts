import { unescape as decode, parse as parseForm } from 'node:querystring'
import type { FastifyRequest } from 'fastify'
import { Failure } from '../../errors.ts'
import { isNestedTooDeep, MAX_DEPTH } from '../../json.ts'
import type { App } from './app-type.ts'
import { openMultipartParser } from './multipart.ts'

// What real clients send: JSON, forms, an empty body under any content type, none at all (wire-contract.md, section 2).

/** A form with more fields is rejected, since the others would be lost silently. No operation needs as many. */
const MAX_FIELDS = 500

/** Makes an interface read JSON, urlencoded and multipart bodies, all as one plain object. */
export function addBodyParsers(app: App): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'string' }, async (_request: FastifyRequest, text: string) =>
    readJson(text),
  )
  // What a browser's fetch sends with a bare string.
  app.addContentTypeParser('text/plain', { parseAs: 'string' }, async (_request: FastifyRequest, text: string) => readJson(text))
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string' },
    async (_request: FastifyRequest, text: string) => readFormOrJson(text),
  )
  app.addContentTypeParser('multipart/form-data', (request, payload, done) => {
    readMultipart(request, payload).then((fields) => done(null, fields), done)
  })
  app.addContentTypeParser('*', { parseAs: 'string' }, async (request: FastifyRequest, text: string) => {
    if (text === '') return {}
    if (request.headers['content-type']) throw new Failure('unsupported')
    return readFormOrJson(text)
  })
}

/** Accepts JSON under a form's type, as `curl -d` and PHP send it by default: read as a form, options that protect a video would be lost silently. */
function readFormOrJson(text: string): unknown {
  const start = text.trimStart().slice(0, 3)
  if (/^[[{]/.test(start)) return readJson(text)
  if (/^%(7b|5b)/i.test(start) && !text.includes('&')) return readJson(decodeOnlyName(text.trim()))
  return readForm(text)
}

/** A form of one name that has no value: some clients write `=` after it. */
function decodeOnlyName(form: string): string {
  return decode((form.endsWith('=') ? form.slice(0, -1) : form).replaceAll('+', ' '))
}

function readJson(text: string): unknown {
  if (text.trim() === '') return {}
  if (isNestedTooDeep(text))
    throw new Failure('invalid', `The body has values nested more than ${MAX_DEPTH} deep. Send a flat object.`)
  try {
    const value: unknown = JSON.parse(text, mayNamePrototype(text) ? refusePrototype : undefined)
    // PHP clients send an empty array for an empty object.
    return Array.isArray(value) && value.length === 0 ? {} : value
  } catch (error) {
    throw new Failure('invalid', 'The body is not valid JSON.', { cause: error })
  }
}

/** Checking each name makes parsing several times slower, so it is done only when the name may occur, plain or escaped. */
function mayNamePrototype(text: string): boolean {
  return text.includes('__proto__') || text.includes('\\u')
}

function refusePrototype(key: string, value: unknown): unknown {
  if (key === '__proto__') throw new SyntaxError('__proto__ is not a name')
  return value
}

function readForm(text: string): Record<string, string | string[] | undefined> {
  if (text.split('&', MAX_FIELDS + 1).length > MAX_FIELDS) throw tooManyFields()
  return { ...parseForm(text, '&', '=', { maxKeys: 0 }) }
}

async function readMultipart(
  request: FastifyRequest,
  payload: NodeJS.ReadableStream,
): Promise<Record<string, string | string[]>> {
  const { promise, resolve, reject } = Promise.withResolvers<Record<string, string | string[]>>()
  const maxBytes = request.routeOptions.bodyLimit
  const fields = new Map<string, string[]>()
  const parser = openMultipartParser(request.headers, {
    limits: { fields: MAX_FIELDS, parts: MAX_FIELDS, files: 0, fieldSize: maxBytes, headerPairs: 100 },
  })
  const refuse = (failure: Failure) => {
    payload.unpipe(parser)
    payload.resume()
    reject(failure)
  }
  const refuseUnreadable = (cause: unknown) => refuse(new Failure('invalid', 'The multipart body cannot be read.', { cause }))
  parser.on('field', (name: string, value: string) => {
    const values = fields.get(name)
    if (values) values.push(value)
    else fields.set(name, [value])
  })
  for (const limit of ['fieldsLimit', 'partsLimit'] as const) parser.on(limit, () => refuse(tooManyFields()))
  parser.on('error', refuseUnreadable)
  parser.on('finish', () =>
    resolve(Object.fromEntries([...fields].map(([name, values]) => [name, values.length > 1 ? values : (values[0] ?? '')]))),
  )
  payload.on('error', refuseUnreadable)
  let receivedBytes = 0
  payload.on('data', (bytes: Buffer) => {
    receivedBytes += bytes.length
    if (receivedBytes > maxBytes) refuse(new Failure('too-large'))
  })
  payload.pipe(parser)
  return await promise
}

function tooManyFields(): Failure {
  return new Failure('too-large', `A form has at most ${MAX_FIELDS} fields. Send several forms, or JSON.`)
}
