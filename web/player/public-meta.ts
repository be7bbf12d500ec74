/** What anyone may know of a video: nothing, where its owner has not made that public. */
export type PublicMeta = { title?: string; posterUrl?: string }

/** @param root the installation's address, as this page has it: a poster is loaded from there alone */
export async function loadPublicMeta(root: URL, videoId: string): Promise<PublicMeta> {
  const answer = await fetch(new URL(`api/meta/${videoId}`, root)).catch(() => undefined)
  const meta: { title?: string; posters?: { url: string }[] } = answer?.ok ? await answer.json() : {}
  const [poster] = meta.posters ?? []
  const path = poster && new URL(poster.url).pathname.replace(/^.*\/poster\//, 'poster/')
  return { title: meta.title, posterUrl: path && new URL(path, root).href }
}
