import ajvCompiler from '@fastify/ajv-compiler'
import fastJsonStringifyCompiler from '@fastify/fast-json-stringify-compiler'
import type { FastifySchemaCompiler, FastifySerializerCompiler } from 'fastify'

// Fastify's own compilers, but each schema is compiled when it is first needed: compiling all took a fifth of the start.

// Values of another type are rejected, not converted. Faults come with their schema, for the sentence about them (validation.ts).
const compileValidator = ajvCompiler()({}, { customOptions: { coerceTypes: false, verbose: true } })
const compileSerializer = fastJsonStringifyCompiler()()

/** Validates requests. Names in schemas of headers are in lower case. */
export const lazyValidator: FastifySchemaCompiler<unknown> = ({ schema }) => {
  let validate: ReturnType<typeof compileValidator> | undefined
  const isValid: ReturnType<typeof lazyValidator> = (value) => {
    validate ??= compileValidator({ schema })
    const result = validate(value) === true
    isValid.errors = validate.errors
    return result
  }
  return isValid
}

/** Serializes responses. */
export const lazySerializer: FastifySerializerCompiler<unknown> = ({ schema, method, url, httpStatus = '' }) => {
  let serialize: ReturnType<typeof compileSerializer> | undefined
  return (response) => {
    serialize ??= compileSerializer({ schema, method, url, httpStatus })
    return serialize(response)
  }
}
