import { createServer } from 'node:net'
import { LOOPBACK } from './loopback-port.ts'

// Runs in the network of a sandbox, for as long as it takes to open a port there: the server that started it accepts the connections.

const server = createServer().listen(LOOPBACK.port, LOOPBACK.host, () => {
  process.send?.('listening', server, undefined, () => process.exit())
})
