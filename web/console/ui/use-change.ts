import { type QueryKey, useMutation, useQueryClient } from '@tanstack/react-query'
import { useAnnounce } from './announcements.tsx'

export type Change<Reply, Input> = {
  call(input: Input): Promise<Reply>
  /** What was done, in a sentence. */
  announced?: string | ((reply: Reply, input: Input) => string)
  /** Before anything is read again: a dialog is closed, or a page left. */
  onDone?(reply: Reply, input: Input): unknown
  /** What is read again: queries whose keys begin so. */
  refreshes: readonly QueryKey[]
}

/** A call that changes what pages show, sent by `mutate`. */
export function useChange<Reply, Input = void>({ call, announced, onDone, refreshes }: Change<Reply, Input>) {
  const queries = useQueryClient()
  const announce = useAnnounce()
  return useMutation({
    mutationFn: (input: Input) => call(input),
    async onSuccess(reply, input) {
      await onDone?.(reply, input)
      if (announced !== undefined) announce(typeof announced === 'string' ? announced : announced(reply, input))
      await Promise.all(refreshes.map((queryKey) => queries.invalidateQueries({ queryKey })))
    },
  })
}
