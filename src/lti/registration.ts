import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import type { Caller } from '../accounts/permission.ts'
import { requireRecentSignIn } from '../accounts/recent-sign-in.ts'
import { recordAuditEvent } from '../audit/audit-log.ts'
import { hashSecret, isSecret, newSecret } from '../crypto/secret.ts'
import { Failure } from '../errors.ts'
import { parseOutboundUrl } from '../outbound/policy.ts'
import { askPlatform, assertEncrypted } from './ask-platform.ts'
import { SCORE_SCOPE } from './message.ts'
import { type PlatformDeps, preparePlatform } from './platform.ts'
import { findRegistration, insertRegistration, spendRegistration } from './platform-store.ts'

// Dynamic registration (LTI 1.3 dynamic registration 1.0). The owner makes a link, an administrator of the platform opens it there, and
// the platform and this server exchange what each has to know. The owner confirms the result.

const LIFE_S = 3600
const MAX_URL = 2048

const Configuration = Type.Object(
  {
    issuer: Type.String({ maxLength: MAX_URL }),
    authorization_endpoint: Type.String({ maxLength: MAX_URL }),
    token_endpoint: Type.String({ maxLength: MAX_URL }),
    jwks_uri: Type.String({ maxLength: MAX_URL }),
    registration_endpoint: Type.String({ maxLength: MAX_URL }),
    'https://purl.imsglobal.org/spec/lti-platform-configuration': Type.Optional(
      Type.Object({ product_family_code: Type.Optional(Type.String()) }, { additionalProperties: true }),
    ),
  },
  { additionalProperties: true },
)
type Configuration = Static<typeof Configuration>

const TOOL_CONFIGURATION = 'https://purl.imsglobal.org/spec/lti-tool-configuration'
const Registered = Type.Object(
  {
    client_id: Type.Union([Type.String({ minLength: 1, maxLength: 255 }), Type.Integer()]),
    [TOOL_CONFIGURATION]: Type.Optional(
      Type.Object({ deployment_id: Type.Optional(Type.String({ maxLength: 255 })) }, { additionalProperties: true }),
    ),
  },
  { additionalProperties: true },
)

/** Makes a link with which one platform registers, within an hour. @returns the end of its address, the only copy @throws Failure `sign-in-again` */
export async function createRegistrationLink(
  { write, nowS }: Pick<PlatformDeps, 'write' | 'nowS'>,
  caller: Caller,
): Promise<{ secret: string; expiresAtS: number }> {
  requireRecentSignIn(caller, nowS())
  const [secret, createdAtS] = [newSecret(), nowS()]
  const { accountId } = caller
  const expiresAtS = createdAtS + LIFE_S
  await write(async (tx) => {
    await insertRegistration(tx, { hash: hashSecret(secret), accountId, createdAtS, expiresAtS })
    const event = { atS: createdAtS, accountId, by: caller, kind: 'platform:link-made', subjects: [accountId] } as const
    await recordAuditEvent(tx, { ...event, details: { expiresAtS } })
  })
  return { secret, expiresAtS }
}

/** What a platform sends when its administrator opens the link. */
type Opened = { secret: string; configurationUrl: string; registrationToken: string | undefined }

/**
 * Registers with the platform that opened a link. The link is used up before anything is sent there.
 * @param urlsOf the addresses of this server for a platform
 * @throws Failure in words for the administrator of the platform
 */
export async function registerPlatform(
  deps: PlatformDeps & { urlsOf(platformId: string): ToolUrls },
  { secret, configurationUrl, registrationToken }: Opened,
): Promise<{ name: string; issuer: string }> {
  const { db, write, nowS, masterKey, outbound } = deps
  const hash = hashSecret(secret)
  const accountId = isSecret(secret) ? await findRegistration(db, hash, nowS()) : undefined
  if (accountId === undefined) throw linkEnded()
  const configuration = await readConfiguration(deps, accountId, configurationUrl)
  const prepared = await preparePlatform()
  if (!(await write((tx) => spendRegistration(tx, hash, nowS())))) throw linkEnded()
  const { status, body } = await askPlatform(outbound, {
    accountId,
    url: configuration.registration_endpoint,
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...(registrationToken && { Authorization: `Bearer ${registrationToken}` }) },
    body: JSON.stringify(toolConfiguration(deps.urlsOf(prepared.id))),
  })
  if (status < 200 || status > 299 || !Value.Check(Registered, body))
    throw new Failure(
      'unavailable',
      `The platform did not register this server: it answered ${status}. Ask the owner of the videos for a new link.`,
    )
  const { issuer, authorization_endpoint: authorizationUrl, token_endpoint: tokenUrl, jwks_uri: keysUrl } = configuration
  const deploymentId = body[TOOL_CONFIGURATION]?.deployment_id
  const name = nameOf(configuration)
  const clientId = String(body.client_id)
  await write(async (tx) => {
    const addresses = { authorizationUrl, tokenUrl, keysUrl, deploymentIds: deploymentId ? [deploymentId] : [] }
    await prepared.insert(tx, masterKey, { accountId, name, issuer, clientId, ...addresses }, nowS())
    const event = { atS: nowS(), accountId, by: 'server', kind: 'platform:added', subjects: [prepared.id] } as const
    await recordAuditEvent(tx, { ...event, details: { name, issuer, clientId } })
  })
  return { name, issuer }
}

function linkEnded(): Failure {
  return new Failure('forbidden', 'This link was used already, or its hour is over. Ask the owner of the videos for a new one.')
}

async function readConfiguration(
  { outbound }: Pick<PlatformDeps, 'outbound'>,
  accountId: string,
  configurationUrl: string,
): Promise<Configuration> {
  const { status, body } = await askPlatform(outbound, { accountId, url: configurationUrl })
  if (status !== 200 || !Value.Check(Configuration, body))
    throw new Failure(
      'invalid',
      `The platform’s configuration could not be read: its address answered ${status}, or no configuration.`,
    )
  // Else a server could register in the name of another platform (dynamic registration, section 3.5.1).
  if (!isBelow(body.issuer, configurationUrl))
    throw new Failure(
      'invalid',
      `The configuration is for ${body.issuer}, but was read from another address. Nothing was registered.`,
    )
  for (const name of ['authorization_endpoint', 'token_endpoint', 'jwks_uri', 'registration_endpoint'] as const)
    assertEncrypted(outbound, body[name])
  parseOutboundUrl(outbound, body.issuer)
  return body
}

/** Whether an address begins with the issuer's: the same origin, and its path or one below. */
function isBelow(issuer: string, address: string): boolean {
  const [base, url] = [URL.parse(issuer), URL.parse(address)]
  if (!base || !url || base.origin !== url.origin || base.search || base.hash) return false
  const folder = base.pathname.endsWith('/') ? base.pathname : `${base.pathname}/`
  return url.pathname.startsWith(folder)
}

function nameOf(configuration: Configuration): string {
  const product = configuration['https://purl.imsglobal.org/spec/lti-platform-configuration']?.product_family_code ?? ''
  const { host } = new URL(configuration.issuer)
  return /^[\w .-]{1,40}$/.test(product) ? `${product} at ${host}`.slice(0, 100) : host.slice(0, 100)
}

/** Where a platform finds this server. */
export type ToolUrls = { login: string; launch: string; keys: string; domain: string; target: string }

function toolConfiguration({ login, launch, keys, domain, target }: ToolUrls) {
  return {
    application_type: 'web',
    response_types: ['id_token'],
    grant_types: ['implicit', 'client_credentials'],
    client_name: 'Reelgate',
    initiate_login_uri: login,
    redirect_uris: [launch],
    jwks_uri: keys,
    token_endpoint_auth_method: 'private_key_jwt',
    scope: SCORE_SCOPE,
    [TOOL_CONFIGURATION]: {
      domain,
      description: 'Protected videos',
      target_link_uri: target,
      custom_parameters: {},
      claims: ['iss', 'sub', 'name', 'given_name', 'family_name'],
      messages: [
        { type: 'LtiResourceLinkRequest' },
        { type: 'LtiDeepLinkingRequest', target_link_uri: target, label: 'Choose a video' },
      ],
    },
  }
}
