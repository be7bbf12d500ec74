import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

export const PLUGIN = join(import.meta.dirname, '../../integrations/wordpress/reelgate')

/** What the plug-in has around it: see `stand-in.php`. Each step returns its value, and what was done meanwhile: hooks that ran, requests to the server. */
export type Scene = {
  options?: Record<string, unknown>
  users?: Record<string, { display_name: string; user_email: string; user_login: string; may?: string[] }>
  signedInAs?: number
  posts?: Record<string, string>
  post?: number
  nowS?: number
  filters?: Record<string, unknown>
  hasNonce?: boolean
  home?: string
  otherPlugin?: boolean
  /** Of `wp-config.php`. */
  constants?: Record<string, string>
  /** PHP code, as of a theme's `functions.php`. */
  functions?: string
  /** Which one of a network of sites. */
  site?: number
}
export type Step = { do: string; with?: Scene } & Record<string, unknown>
export type Done<Value> = { value: Value; done: [string, unknown[]][] }

/** Runs the plug-in's own code through the steps of a scene. */
export async function runScene(scene: Scene, steps: readonly Step[]): Promise<Done<unknown>[]> {
  const php = spawn('php', [join(import.meta.dirname, 'stand-in.php'), join(PLUGIN, 'reelgate.php')])
  php.stdin.end(JSON.stringify({ ...scene, steps }))
  const [output, errors] = await Promise.all([text(php.stdout), text(php.stderr), once(php, 'close')])
  if (php.exitCode !== 0 || !output.startsWith('[{')) throw new Error(`php: ${php.exitCode} ${output}${errors}`)
  return JSON.parse(output) as Done<unknown>[]
}
