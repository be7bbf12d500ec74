/** The way from an address to the installation's root, below whatever prefix a proxy has put it. */
export function pathToRoot(url: string): string {
  const depth = (url.split('?')[0]?.match(/\//g)?.length ?? 1) - 1
  return depth === 0 ? './' : '../'.repeat(depth)
}
