// Fastify that does nothing but what nobody can leave out: reads the request, knows the key by heart, answers the same text always.
// Arguments: the key's text, a file with the answer.
import { readFileSync } from 'node:fs'
import Fastify from 'fastify'
import { Type } from 'typebox'

const [secret = '', answerFile = ''] = process.argv.slice(2)
const answer = readFileSync(answerFile, 'utf8')
const accounts = new Map([[secret, 'the account']])

const app = Fastify()
app.addHook('onRequest', async (request, reply) => {
  const [scheme, text = ''] = (request.headers.authorization ?? '').split(' ')
  if (scheme !== 'Apisecret' || !accounts.has(text)) return reply.code(401).send({ message: 'Who are you?' })
})
app.get('/api/videos', { schema: { querystring: Type.Record(Type.String(), Type.String()) } }, async (_request, reply) =>
  reply.type('application/json').send(answer),
)
app.post(
  '/api/videos/:id/otp',
  {
    schema: {
      params: Type.Object({ id: Type.String() }),
      body: Type.Object({ ttl: Type.Integer({ minimum: 1 }), userId: Type.String({ pattern: '^[A-Za-z0-9_-]{1,36}$' }) }),
    },
  },
  async (_request, reply) => reply.type('application/json').send(answer),
)
console.log(await app.listen({ host: '127.0.0.1', port: 0 }))
