import { type Static, Type } from 'typebox'

/** On or off, as JSON and forms write it. */
export const Flag = Type.Union([
  Type.Literal(1),
  Type.Literal(0),
  Type.Literal('1'),
  Type.Literal('0'),
  Type.Boolean(),
  Type.Literal('true'),
  Type.Literal('false'),
])

export function isOn(flag: Static<typeof Flag>): boolean {
  return ['1', 'true'].includes(String(flag))
}

/** The same of a field that may be absent. */
export function isOnIfGiven(flag: Static<typeof Flag> | undefined): boolean | undefined {
  return flag === undefined ? undefined : isOn(flag)
}
