// @fastify/static with its defaults. Argument: the folder.
import fastifyStatic from '@fastify/static'
import Fastify from 'fastify'

const [folder = ''] = process.argv.slice(2)

const app = Fastify()
app.register(fastifyStatic, { root: folder })
console.log(await app.listen({ host: '127.0.0.1', port: 0 }))
