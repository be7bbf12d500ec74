/** How an operator runs commands: the Debian package has a program on the path, a checkout its own. */
export const PROGRAM_NAME = import.meta.dirname.startsWith('/usr/lib/reelgate/') ? 'reelgate' : 'npx reelgate'
