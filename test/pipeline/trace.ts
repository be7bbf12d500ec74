/** A system call; the lines of strace's output on which it begins and ends. */
export type Call = { text: string; start: number; end: number }

/** The first such call that begins after a place of the trace. */
export function getCall(calls: readonly Call[], names: string, pattern: RegExp, after = -1): Call {
  const found = calls.find(({ text, start }) => start > after && new RegExp(`^(${names})\\(`).test(text) && pattern.test(text))
  if (!found) throw new Error(`no ${names} like ${pattern} after line ${after} of the trace`)
  return found
}

const UNFINISHED = / <unfinished \.\.\.>$/

/** Calls, whole, with the lines on which they begin and end: threads interrupt each other in the trace. */
export function readTrace(trace: string): Call[] {
  const calls: Call[] = []
  const open = new Map<string, Call>()
  for (const [at, line] of trace.split('\n').entries()) {
    const [, pid = '', rest = ''] = /^(\d+)\s+(.*)$/.exec(line) ?? []
    if (rest.startsWith('<...')) {
      const call = open.get(pid)
      if (call) {
        call.end = at
        call.text = call.text.replace(UNFINISHED, rest.replace(/^<\.\.\. \w+ resumed>/, ''))
      }
      continue
    }
    const call = { text: rest, start: at, end: at }
    calls.push(call)
    if (UNFINISHED.test(rest)) open.set(pid, call)
  }
  return calls
}
