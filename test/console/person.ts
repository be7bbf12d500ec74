import { dataPaths } from '../../src/config/data-paths.ts'
import { sendCommand } from '../../src/control/socket.ts'
import type { SignInReply } from '../../src/http/console/sign-in.ts'
import type { Reelgate } from '../in-process.ts'

export type AskOptions = { body?: unknown; headers?: Record<string, string> }

/** A browser with the console's page open: keeps the cookie, and sends what the page sends. */
export type Person = ReturnType<typeof createPerson>

export function createPerson(url: string) {
  const { origin } = new URL(url)
  let cookie: string | undefined

  async function ask(method: string, path: string, { body, headers = {} }: AskOptions = {}): Promise<Response> {
    const isRead = method === 'GET' || method === 'HEAD'
    const response = await fetch(`${url}/console/api${path}`, {
      method,
      headers: {
        'Sec-Fetch-Site': 'same-origin',
        ...(isRead ? {} : { Origin: origin, 'Reelgate-Console': '1' }),
        ...(cookie === undefined ? {} : { Cookie: cookie }),
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...headers,
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    })
    for (const set of response.headers.getSetCookie()) {
      const [pair = ''] = set.split(';')
      if (pair.startsWith('reelgate-console-')) cookie = /Max-Age=0/.test(set) ? undefined : pair
    }
    return response
  }

  return {
    url,
    ask,
    /** The answer, which must be 200. */
    async get<Body>(method: string, path: string, body?: unknown): Promise<Body> {
      const response = await ask(method, path, { body })
      if (response.status !== 200) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
      return response.json() as Promise<Body>
    },
    async whoIs(): Promise<SignInReply> {
      return (await ask('GET', '/sign-in')).json() as Promise<SignInReply>
    },
    get cookie() {
      return cookie
    },
    set cookie(value: string | undefined) {
      cookie = value
    },
  }
}

/** A link of the command line. @returns its token */
export async function makeLink({ env, dataDir }: Pick<Reelgate, 'env' | 'dataDir'>, user?: string): Promise<string> {
  const { controlSocket } = dataPaths(env.REELGATE_DATA ?? dataDir)
  const { url } = (await sendCommand(controlSocket, 'console link', { user })) as { url: string }
  return url.split('#')[1] ?? ''
}

/** Signs in with a link of the command line: without a name as the first administrator. */
export async function signIn(reelgate: Pick<Reelgate, 'url' | 'env' | 'dataDir'>, user?: string): Promise<Person> {
  const person = createPerson(reelgate.url)
  await person.get('POST', '/sign-in/link', { token: await makeLink(reelgate, user) })
  return person
}
