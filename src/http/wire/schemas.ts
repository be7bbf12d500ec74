import ajvCompiler from '@fastify/ajv-compiler'
import fastJsonStringifyCompiler from '@fastify/fast-json-stringify-compiler'
import type { FastifySchemaCompiler, FastifySerializerCompiler } from 'fastify'

// Fastify's own compilers, but each schema is compiled when it is first needed: all at once, they took a fifth of a start.

// A value of another type is refused, not bent: strict where meaning is at stake.
// What it refuses comes with its schema, for the sentence about it (validation.ts).
const compileValidator = ajvCompiler()({}, { customOptions: { coerceTypes: false, verbose: true } })
const compileSerializer = fastJsonStringifyCompiler()()

/** Checks what a route takes. Names in schemas of headers are in lower case. */
export const lazyValidator: FastifySchemaCompiler<unknown> = ({ schema }) => {
  let validate: ReturnType<typeof compileValidator> | undefined
  const isValid: ReturnType<typeof lazyValidator> = (value) => {
    validate ??= compileValidator({ schema })
    const answer = validate(value) === true
    isValid.errors = validate.errors
    return answer
  }
  return isValid
}

/** Writes what a route answers. */
export const lazySerializer: FastifySerializerCompiler<unknown> = ({ schema, method, url, httpStatus = '' }) => {
  let serialize: ReturnType<typeof compileSerializer> | undefined
  return (answer) => {
    serialize ??= compileSerializer({ schema, method, url, httpStatus })
    return serialize(answer)
  }
}
