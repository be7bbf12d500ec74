// As much of RFC 1035 as a machine's resolver asks: one question, answered from a script, to be forgotten immediately (TTL 0).

/** `turn` counts the questions of this type for this name before this one. */
export type NameQuestion = { name: string; type: 'A' | 'AAAA'; turn: number }

const TYPES: Readonly<Record<number, 'A' | 'AAAA'>> = { 1: 'A', 28: 'AAAA' }
const HEADER_BYTES = 12
const NO_SUCH_NAME = 3

/** @param addressesOf undefined: there is no such name. Addresses of the other family are left out. */
export function answerQuery(query: Buffer, addressesOf: (question: Omit<NameQuestion, 'turn'>) => string[] | undefined): Buffer {
  const labels: string[] = []
  let at = HEADER_BYTES
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.subarray(at + 1, at + 1 + length).toString('latin1'))
    at += 1 + length
  }
  const question = query.subarray(HEADER_BYTES, at + 5)
  const type = TYPES[query.readUInt16BE(at + 1)]
  const addresses = type && addressesOf({ name: labels.join('.').toLowerCase(), type })
  const records = (addresses ?? []).filter((address) => address.includes(':') === (type === 'AAAA')).map(recordOf)
  const header = Buffer.alloc(HEADER_BYTES)
  header.writeUInt16BE(query.readUInt16BE(0), 0)
  header.writeUInt16BE(0x8180 | (type && !addresses ? NO_SUCH_NAME : 0), 2) // an answer, recursion done
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(records.length, 6)
  return Buffer.concat([header, question, ...records])
}

function recordOf(address: string): Buffer {
  const data = address.includes(':') ? bytesOfV6(address) : Buffer.from(address.split('.').map(Number))
  const fixed = Buffer.alloc(HEADER_BYTES)
  fixed.writeUInt16BE(0xc00c, 0) // the question's name
  fixed.writeUInt16BE(data.length === 16 ? 28 : 1, 2)
  fixed.writeUInt16BE(1, 4)
  fixed.writeUInt16BE(data.length, 10)
  return Buffer.concat([fixed, data])
}

function bytesOfV6(address: string): Buffer {
  const [head = '', tail] = address.split('::')
  const groups = (part: string | undefined) => (part ? part.split(':') : [])
  const missing = 8 - groups(head).length - groups(tail).length
  const all = [...groups(head), ...Array.from({ length: tail === undefined ? 0 : missing }, () => '0'), ...groups(tail)]
  return Buffer.from(all.map((group) => group.padStart(4, '0')).join(''), 'hex')
}
