// Addresses of the console have plain queries, such as `?q=light&tags=course,light`, instead of the router's JSON.

export function parseQueryString(text: string): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(text))
}

export function toQueryString(query: Record<string, unknown>): string {
  const entries = Object.entries(query).filter(([, value]) => value !== undefined && value !== '')
  const text = new URLSearchParams(entries.map(([name, value]) => [name, String(value)])).toString()
  return text === '' ? '' : `?${text.replaceAll('%2C', ',').replaceAll('%2F', '/')}`
}
