/** Loads a part of the player at its first use. A load that failed is repeated at the next. */
export function loadWhenUsed<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | undefined
  return () => {
    loading ??= load().catch((error) => {
      loading = undefined
      throw error
    })
    return loading
  }
}
