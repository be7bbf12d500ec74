// Plain Node that sends the files of a folder. Argument: the folder.
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'

const READ_BYTES = 256 * 1024
const [folder = ''] = process.argv.slice(2)

const server = createServer(async (request, response) => {
  const path = join(folder, request.url ?? '')
  const { size } = await stat(path)
  response.writeHead(200, { 'Content-Type': 'video/iso.segment', 'Content-Length': size })
  const file = createReadStream(path, { highWaterMark: READ_BYTES })
  response.once('close', () => file.destroy())
  file.pipe(response)
})
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
