/** Runs tasks concurrently. What one throws aborts the others, and is thrown when all have ended. */
export async function runAll(signal: AbortSignal | undefined, tasks: readonly ((signal: AbortSignal) => Promise<unknown>)[]) {
  const failure = new AbortController()
  const either = AbortSignal.any([...(signal ? [signal] : []), failure.signal])
  await Promise.all(tasks.map((task) => task(either).catch((error) => failure.abort(error))))
  either.throwIfAborted()
}
