/** The console's own address, below whatever prefix a proxy has put the installation: scripts are one folder below it. */
const CONSOLE_URL = new URL(/* @vite-ignore */ '../', import.meta.url)

/** The console's path without the last slash, such as `/console`; empty at the root of a development server. */
export const consolePath = CONSOLE_URL.pathname.replace(/\/$/, '')

/** An operation of the API, on the mount that takes the sign-in's cookie. */
export function apiUrl(path: string): URL {
  return new URL(`api/${path}`, CONSOLE_URL)
}

/** The WordPress plug-in, which the build puts next to the console. */
export const PLUGIN_URL = new URL('reelgate-wordpress.zip', CONSOLE_URL)

/**
 * A page or file of the installation, such as `player/`. The server gives addresses below its public URL, which may be another host than
 * the one in the address bar: this is the same thing at the console's own.
 */
export function installationUrl(path: string): URL {
  return new URL(import.meta.env.DEV ? path : `../${path}`, CONSOLE_URL)
}
