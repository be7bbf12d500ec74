/** What happens at the limit of concurrent streams of a viewer. */
export const WHEN_FULL = [
  { value: 'refuse', label: 'The new one is refused' },
  { value: 'stop-oldest', label: 'The oldest is stopped' },
]
