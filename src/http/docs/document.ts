import packageJson from '../../../package.json' with { type: 'json' }
import type { RateLimitConfig } from '../../config/rate-limits.ts'
import { type ErrorCode, FAILURES } from '../../error-catalogue.ts'
import { usualCookieName } from '../console/cookie.ts'
import { BUDGETS } from '../server/identify.ts'
import { createExample, type JsonSchema, listProperties, toJsonSchema } from '../wire/json-schema.ts'
import { FORMAT_PARAMETER, findRowSchema } from '../wire/list-csv.ts'
import type { ApiRoute } from './api-routes.ts'

// The OpenAPI document of both interfaces, made of the routes' own schemas: nothing of an operation is written here.

export type Content = Record<string, { schema: JsonSchema; example?: unknown }>
export type Parameter = {
  name: string
  in: 'path' | 'query' | 'header'
  required: boolean
  description?: string
  schema: JsonSchema
  example?: unknown
}
export type ResponseObject = { description: string; content?: Content }
export type Operation = {
  operationId: string
  tags: string[]
  summary: string
  description: string
  security: Record<string, string[]>[]
  parameters: Parameter[]
  requestBody?: { required: boolean; content: Content }
  responses: Record<string, ResponseObject>
}
export type ApiDocument = {
  openapi: '3.1.0'
  info: { title: string; version: string; description: string; license: { name: string; identifier: string } }
  servers: { url: string }[]
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, JsonSchema>; securitySchemes: Record<string, object> }
}

const text: JsonSchema = { type: 'string' }
const refusal = (properties: Record<string, JsonSchema>): JsonSchema => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
})
const REFUSAL = refusal({ message: text, code: { ...text, enum: Object.keys(FAILURES) }, requestId: text })
const REFUSAL_V2 = refusal({ error: text })

type Interface = {
  path: string
  tag: string
  about: string
  /** Who has permissions. */
  who: 'key' | 'person'
  security: Record<string, string[]>[]
  bodyTypes: readonly string[]
  /** Fields of every body. */
  fields: Record<string, JsonSchema>
  refusal: Content
}

const INTERFACES: readonly Interface[] = [
  {
    path: '/api/',
    tag: 'Current interface',
    about:
      'JSON in and out; the key goes into the header `Authorization: Apisecret SECRET`. An error is `{"message", "code", "requestId"}`: `message` is for people, `code` for programs, and the header `Link` (`rel="help"`) leads to what helps.',
    who: 'key',
    security: [{ apisecret: [] }],
    bodyTypes: ['application/json', 'application/x-www-form-urlencoded', 'multipart/form-data'],
    fields: {},
    refusal: { 'application/json': { schema: { $ref: '#/components/schemas/Refusal' } } },
  },
  {
    path: '/console/api/',
    tag: 'Console',
    about:
      'For pages of the console and people who are signed in. Every operation of the current interface exists here, too: `/console/api/videos` is `/api/videos`. A request has the cookie of a sign-in, which a script cannot read, and never a key; neither is accepted in the other place. Requests other than GET need the header `Reelgate-Console: 1` and, from a browser, an `Origin` that is the server’s own. Below are the operations that only a person can use.',
    who: 'person',
    security: [{ consoleCookie: [] }],
    bodyTypes: ['application/json'],
    fields: {},
    refusal: { 'application/json': { schema: { $ref: '#/components/schemas/Refusal' } } },
  },
  {
    path: '/v2/',
    tag: 'Earlier interface',
    about:
      'POST, with the key as the field `clientSecretKey` of the body; JSON out, or XML with `type=xml`. An error is `{"error"}`; for an unknown video its status is 200, or 404 when the video was to be deleted.',
    who: 'key',
    security: [{ clientSecretKey: [] }],
    bodyTypes: ['application/x-www-form-urlencoded', 'multipart/form-data', 'application/json'],
    fields: { clientSecretKey: { ...text, description: 'the API secret', examples: ['SECRET'] } },
    refusal: { 'application/json': { schema: { $ref: '#/components/schemas/RefusalV2' } }, 'application/xml': { schema: text } },
  },
  {
    path: '/upload',
    tag: 'Form upload',
    about:
      'An S3 POST form: the fields of the upload credentials, and the file last. It needs no key, since the credentials are signed; any origin may send it.',
    who: 'key',
    security: [],
    bodyTypes: ['multipart/form-data'],
    fields: {},
    refusal: { 'application/xml': { schema: text } },
  },
]

/** Statuses with which an operation refuses. */
type Refused = (typeof FAILURES)[ErrorCode]['status']

/** @param limits of the running server; undefined when they are off */
export function apiDocument(routes: readonly ApiRoute[], publicUrl: string, limits: RateLimitConfig | undefined): ApiDocument {
  const paths: ApiDocument['paths'] = {}
  for (const route of routes.filter((one) => !isCopy(one, routes))) {
    const path = route.url.replace(/:(\w+)/g, '{$1}').replace(/(?<=.)\/$/, '')
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: describeOperation(route, path, limits) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Reelgate',
      version: packageJson.version,
      description: packageJson.description,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: publicUrl }],
    tags: INTERFACES.map(({ tag, about }) => ({ name: tag, description: about })),
    paths,
    components: {
      schemas: { Refusal: REFUSAL, RefusalV2: REFUSAL_V2 },
      securitySchemes: {
        apisecret: { type: 'apiKey', in: 'header', name: 'Authorization', description: 'Apisecret, a space, and the API secret' },
        consoleCookie: {
          type: 'apiKey',
          in: 'cookie',
          name: usualCookieName(publicUrl),
          description: 'set by a sign-in',
        },
        // OpenAPI has no security scheme for a key in a body; the field is in each body's schema, too.
        clientSecretKey: {
          type: 'http',
          scheme: 'clientSecretKey',
          description: 'the API secret, as the field clientSecretKey of the body',
        },
      },
    },
  }
}

/** Whether a route of the console is one of the current interface, under its other address. */
function isCopy({ method, url }: ApiRoute, routes: readonly ApiRoute[]): boolean {
  if (!url.startsWith('/console/api/')) return false
  const original = url.replace('/console', '')
  return routes.some((route) => route.method === method && route.url === original)
}

function describeOperation(
  { method, url, permission, budget, schema }: ApiRoute,
  path: string,
  limits: RateLimitConfig | undefined,
): Operation {
  const { tag, security, bodyTypes, who } = findInterface(url)
  const body = describeBody(url, schema.body)
  const isList = method === 'GET' && !url.startsWith('/v2/') && findRowSchema(schema.response) !== undefined
  return {
    operationId: `${method.toLowerCase()}${path.replace(/[^a-zA-Z0-9]+(.)?/g, (_, next: string = '') => next.toUpperCase())}`,
    tags: [tag],
    summary: schema.summary ?? '',
    description: [schema.description, aboutPermission({ permission, budget, who }, limits)].filter(Boolean).join('\n\n'),
    security: permission === undefined ? [] : security,
    parameters: [
      ...describeParameters('path', schema.params),
      ...describeParameters('query', schema.querystring),
      ...(isList ? describeParameters('query', { properties: { format: FORMAT_PARAMETER } }) : []),
      ...describeParameters('header', schema.headers),
    ],
    ...(body && {
      requestBody: {
        required: (body.anyOf ?? [body]).every(({ required = [] }) => required.length > 0),
        content: requestContent(bodyTypes, body),
      },
    }),
    responses: { ...describeRefusals(url, permission, schema), ...describeResponses(schema.response, isList) },
  }
}

function describeBody(url: string, schema: unknown): JsonSchema | undefined {
  const { fields } = findInterface(url)
  const names = Object.keys(fields)
  if (names.length === 0) return schema === undefined ? undefined : toJsonSchema(schema)
  const { properties, required = [], ...body } = schema === undefined ? {} : toJsonSchema(schema)
  return { ...body, type: 'object', properties: { ...fields, ...properties }, required: [...names, ...required] }
}

/** A file comes as a form; what else the operation takes, in any other way that is read. */
function requestContent(types: readonly string[], body: JsonSchema): Content {
  const bodies = body.anyOf ?? [body]
  const file = bodies.find(holdsFile)
  const others = bodies.filter((one) => !holdsFile(one))
  const other = others.length > 1 ? { anyOf: others } : others[0]
  const otherTypes = types.filter((type) => !file || type !== FILE_TYPE)
  return { ...(file && describeContent([FILE_TYPE], file)), ...(other && describeContent(otherTypes, other)) }
}

const FILE_TYPE = 'multipart/form-data'

function holdsFile({ properties = {} }: JsonSchema): boolean {
  return Object.values(properties).some(({ format }) => format === 'binary')
}

function findInterface(url: string): Interface {
  const found = INTERFACES.find(({ path }) => url.startsWith(path))
  if (!found) throw new Error(`the docs know no interface at ${url}`)
  return found
}

function aboutPermission(
  { permission, budget: ofRoute, who }: Pick<ApiRoute, 'permission' | 'budget'> & Pick<Interface, 'who'>,
  limits: RateLimitConfig | undefined,
): string {
  if (permission === undefined) return ''
  const budget = ofRoute ?? BUDGETS[permission]
  const { ip, key, account } = limits?.[budget] ?? {}
  const numbers = limits
    ? `at most ${ip} a minute for an address, ${key} for a ${who}, ${account} for an account`
    : 'rate limits are off here'
  return `The ${who} needs the permission \`${permission}\`. Counts as one of the \`${budget}\`: ${numbers}.`
}

function describeParameters(location: Parameter['in'], schema: unknown): Parameter[] {
  if (schema === undefined) return []
  return listProperties(toJsonSchema(schema)).map(({ name, schema: property, isRequired }) => ({
    name,
    in: location,
    required: isRequired,
    ...(property.description && { description: property.description }),
    schema: property,
    ...(property.examples && { example: property.examples[0] }),
  }))
}

function describeContent(types: readonly string[], schema: JsonSchema): Content {
  return Object.fromEntries(types.map((type) => [type, { schema, example: createExample(schema) }]))
}

function describeResponses(response: unknown, isList: boolean): Record<string, ResponseObject> {
  const replies = Object.entries(response === undefined ? {} : toJsonSchema(response))
  return Object.fromEntries(
    replies.map(([status, reply]) => {
      const described = describeResponse(status, toJsonSchema(reply))
      return [status, isList && status === '200' ? { ...described, content: { ...described.content, ...CSV } } : described]
    }),
  )
}
const CSV: Content = { 'text/csv': { schema: text } }

function describeResponse(
  status: string,
  { description, content, ...schema }: JsonSchema & { content?: Content },
): ResponseObject {
  const said = { description: description ?? DESCRIPTIONS[status] ?? 'Done' }
  if (content) return { ...said, content }
  return schema.type === 'null' ? said : { ...said, content: { 'application/json': { schema } } }
}

const DESCRIPTIONS: Readonly<Record<string, string>> = { 304: 'Nothing has changed since the response with this ETag' }

/** What every operation of its kind may answer, besides what it says itself. */
function describeRefusals(url: string, permission: ApiRoute['permission'], { params, body }: ApiRoute['schema']) {
  const isKeyed = permission !== undefined
  const statuses: readonly (Refused | false)[] = [
    400,
    isKeyed && 401,
    (isKeyed || body !== undefined) && 403,
    (isKeyed || params !== undefined) && 404,
    isKeyed && 409,
    body !== undefined && 413,
    body !== undefined && 415,
    429,
    503,
  ]
  const content = findInterface(url).refusal
  return Object.fromEntries(
    statuses.filter((status) => status !== false).map((status) => [status, { description: describeStatus(status), content }]),
  )
}

function describeStatus(status: Refused): string {
  const codes = Object.entries(FAILURES).filter(([, failure]) => failure.status === status)
  return codes.map(([code, { sentence }]) => `\`${code}\`: ${sentence}`).join(' ')
}
