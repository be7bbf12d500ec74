// @tus/server with its file store. Argument: the folder.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { FileStore } from '@tus/file-store'
import { Server } from '@tus/server'

const [directory = ''] = process.argv.slice(2)

const tus = new Server({ path: '/api/uploads', datastore: new FileStore({ directory }) })
const server = createServer((request, response) => void tus.handle(request, response))
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
