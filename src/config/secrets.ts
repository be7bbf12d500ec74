import { resolve } from 'node:path'
import { Failure } from '../errors.ts'
import { invalid, type Variables } from './environment.ts'

// What must never be logged, or leads to it.

const MASTER_KEY_VARIABLES = ['REELGATE_MASTER_KEY', 'REELGATE_MASTER_KEY_FILE', 'REELGATE_MASTER_KEY_COMMAND'] as const

/** @throws Failure `invalid` */
export function readSecrets(variables: Variables, dataDir: string) {
  const [keyVariable, otherKeyVariable] = MASTER_KEY_VARIABLES.filter((name) => variables[name] !== undefined)
  if (otherKeyVariable) throw new Failure('invalid', `${keyVariable} and ${otherKeyVariable} are both set: keep one of them.`)
  const databaseUrl = variables.REELGATE_DATABASE_URL
  if (databaseUrl !== undefined && !isDatabaseUrl(databaseUrl)) throw invalid('REELGATE_DATABASE_URL')
  return {
    /** Holds a password. Undefined: SQLite, in the data folder. */
    databaseUrl,
    masterKeyFile: resolve(variables.REELGATE_MASTER_KEY_FILE ?? `${dataDir}.key`),
    /** The key ring as hexadecimal digits, when the environment and not a file holds it. */
    masterKeyHex: variables.REELGATE_MASTER_KEY,
    /** A program that prints the key, and its arguments. */
    masterKeyCommand:
      variables.REELGATE_MASTER_KEY_COMMAND === undefined ? undefined : readCommand(variables.REELGATE_MASTER_KEY_COMMAND),
    /** The variable that says where the master key comes from. */
    masterKeyVariable: keyVariable ?? 'REELGATE_MASTER_KEY_FILE',
    /** Of a worker on this machine. */
    workerToken: variables.REELGATE_WORKER_TOKEN,
  }
}

/**
 * Whether it is the URL of a PostgreSQL database. An unescaped `/` in a password would end it, and the rest of the password
 * would be logged.
 */
export function isDatabaseUrl(text: string): boolean {
  if (!/^postgres(ql)?:\/\//.test(text) || !URL.canParse(text)) return false
  const { username, password } = new URL(text)
  return username + password !== '' || !text.includes('@')
}

/** A word of a command: bare, or in quotes. Characters that a shell would interpret are rejected, since here they would be literal. */
const COMMAND_WORD = /\s*(?:([^\s'"\\$`|&;<>()*?~#]+)|'([^']*)'|"([^"\\$`]*)")(?=\s|$)/y

/** @throws Failure `invalid` for what only a shell could run */
function readCommand(text: string): readonly string[] {
  const words: string[] = []
  const line = text.trim()
  for (COMMAND_WORD.lastIndex = 0; COMMAND_WORD.lastIndex < line.length; ) {
    const word = COMMAND_WORD.exec(line)
    if (!word) throw invalid('REELGATE_MASTER_KEY_COMMAND')
    words.push(word[1] ?? word[2] ?? word[3] ?? '')
  }
  if (!words[0]) throw invalid('REELGATE_MASTER_KEY_COMMAND')
  return words
}
