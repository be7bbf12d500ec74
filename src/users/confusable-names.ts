/**
 * Whether people could take one name for the other: equal after NFKC and in lower case, with each character replaced by the one that
 * Unicode gives for all that look like it (UTS 39, section 4, "skeleton"). In upper case, too: there an I looks like an l.
 */
type AreConfusable = (a: string, b: string) => boolean

/** Loads the table of confusable characters, 100 kB of JSON that few processes need. */
export async function openConfusables(): Promise<AreConfusable> {
  const { default: prototypes } = await import('unhomoglyph/data.json', { with: { type: 'json' } })
  const prototypeOf = new Map(Object.entries(prototypes))

  function skeleton(text: string): string {
    const visible = text.normalize('NFD').replaceAll(/\p{Default_Ignorable_Code_Point}/gu, '')
    const replaced = [...visible].map((character) => prototypeOf.get(character) ?? character).join('')
    return replaced.normalize('NFD').replaceAll(/\s+/g, ' ').trim().toLowerCase() // 0 is replaced by O, and o by itself
  }

  function looksOf(name: string): string[] {
    const text = name.normalize('NFKC')
    return [skeleton(text), skeleton(text.toLowerCase())]
  }

  return (a, b) => {
    const looks = new Set(looksOf(a))
    return looksOf(b).some((look) => looks.has(look))
  }
}
