// Fastify with the minimum of work: it parses the request, looks up the key in memory and returns a constant text.
// Arguments: the API key, a file with the text.
import { readFileSync } from 'node:fs'
import Fastify from 'fastify'
import { Type } from 'typebox'

const [apiKey = '', textFile = ''] = process.argv.slice(2)
const text = readFileSync(textFile, 'utf8')
const accounts = new Map([[apiKey, 'the account']])

const app = Fastify()
app.addHook('onRequest', async (request, reply) => {
  const [scheme, key = ''] = (request.headers.authorization ?? '').split(' ')
  if (scheme !== 'Apisecret' || !accounts.has(key)) return reply.code(401).send({ message: 'Unknown API key' })
})
app.get('/api/videos', { schema: { querystring: Type.Record(Type.String(), Type.String()) } }, async (_request, reply) =>
  reply.type('application/json').send(text),
)
app.post(
  '/api/videos/:id/otp',
  {
    schema: {
      params: Type.Object({ id: Type.String() }),
      body: Type.Object({ ttl: Type.Integer({ minimum: 1 }), userId: Type.String({ pattern: '^[A-Za-z0-9_-]{1,36}$' }) }),
    },
  },
  async (_request, reply) => reply.type('application/json').send(text),
)
console.log(await app.listen({ host: '127.0.0.1', port: 0 }))
