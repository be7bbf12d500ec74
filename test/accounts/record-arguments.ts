import { subscribe } from 'node:diagnostics_channel'
import { appendFileSync } from 'node:fs'

// Imported by Node before a server (`NODE_OPTIONS=--import=…`): writes down the arguments and the environment of each process that the
// server starts, however short it runs, to the file that `RECORD_ARGUMENTS` names. One line of JSON each.

type Started = { options: { args: readonly string[]; envPairs: readonly string[] } }

subscribe('tracing:child_process.spawn:start', (message) => {
  const { args, envPairs } = (message as Started).options
  appendFileSync(process.env.RECORD_ARGUMENTS ?? '', `${JSON.stringify({ args, envPairs })}\n`)
})
