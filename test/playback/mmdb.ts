// A database of countries in the MaxMind format (version 2.0), as a company would sell it: a tree of address bits, then the data.

type Node = [Node | string | undefined, Node | string | undefined]

/** @param countries of IPv4 prefixes, such as `{ '80.0.0.0/8': 'JP' }` */
export function makeCountries(countries: Readonly<Record<string, string>>): Buffer {
  const root: Node = [undefined, undefined]
  for (const [prefix, country] of Object.entries(countries)) put(root, prefix, country)
  const nodes = nodesOf(root)
  const locations = new Map<string, number>()
  const data: Buffer[] = []
  for (const country of new Set(Object.values(countries))) {
    locations.set(country, Buffer.concat(data).length)
    data.push(map({ country: map({ iso_code: text(country) }) }))
  }
  /** 24 bits: another node, nothing, or a place in the data. */
  function record(side: Node[0]): Buffer {
    const value =
      side === undefined
        ? nodes.length
        : typeof side === 'string'
          ? nodes.length + 16 + (locations.get(side) ?? 0)
          : nodes.indexOf(side)
    return Buffer.from([value >> 16, value >> 8, value])
  }
  const tree = nodes.flatMap(([zero, one]) => [record(zero), record(one)])
  const facts = { node_count: number(nodes.length), record_size: number(24), ip_version: number(4), build_epoch: number(0) }
  return Buffer.concat([...tree, Buffer.alloc(16), ...data, Buffer.from('\xab\xcd\xefMaxMind.com', 'latin1'), map(facts)])
}

function put(root: Node, prefix: string, country: string): void {
  const [address = '', length = '32'] = prefix.split('/')
  const bits = address.split('.').flatMap((part) => [...Number(part).toString(2).padStart(8, '0')].map(Number))
  let node = root
  for (const bit of bits.slice(0, Number(length) - 1)) {
    const next = node[bit]
    const below: Node = typeof next === 'object' ? next : [undefined, undefined]
    node[bit] = below
    node = below
  }
  node[bits[Number(length) - 1] ?? 0] = country
}

function nodesOf(node: Node): Node[] {
  return [node, ...node.flatMap((side) => (typeof side === 'object' ? nodesOf(side) : []))]
}

const map = (entries: Readonly<Record<string, Buffer>>) =>
  Buffer.concat([
    Buffer.from([(7 << 5) | Object.keys(entries).length]),
    ...Object.entries(entries).flatMap(([key, value]) => [text(key), value]),
  ])
const text = (value: string) => Buffer.concat([Buffer.from([(2 << 5) | value.length]), Buffer.from(value)])
const number = (value: number) => Buffer.from([(6 << 5) | 4, value >> 24, value >> 16, value >> 8, value])
