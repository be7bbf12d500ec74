/** Such as `12 GB`, in steps of a thousand. */
export function formatSize(sizeBytes: number): string {
  if (sizeBytes < 1000) return `${sizeBytes} bytes`
  const units = ['kB', 'MB', 'GB', 'TB']
  const power = Math.min(units.length, Math.floor(Math.log10(sizeBytes) / 3))
  const amount = sizeBytes / 1000 ** power
  return `${amount.toFixed(amount < 10 ? 1 : 0)} ${units[power - 1]}`
}
