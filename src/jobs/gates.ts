export type Gates = ReturnType<typeof createGates>

/** Lets so many pieces of work of one name go on at once; the others wait in turn. */
export function createGates(places: number) {
  const gates = new Map<string, { busy: number; waiting: (() => void)[] }>()
  return async function through<T>(name: string, work: () => Promise<T>): Promise<T> {
    const gate = gates.get(name) ?? { busy: 0, waiting: [] }
    gates.set(name, gate)
    if (gate.busy < places) gate.busy++
    else await new Promise<void>((resolve) => gate.waiting.push(resolve)) // takes over the place of one that is done
    try {
      return await work()
    } finally {
      const next = gate.waiting.shift()
      if (next) next()
      else if (--gate.busy === 0) gates.delete(name)
    }
  }
}
