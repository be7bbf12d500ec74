// Browsers translate a page by putting a `<font>` with the translation where a text was. React knows only its own texts: it fails when one
// that it removes, or inserts before, is not where it was, and changes texts that are no longer shown. Here the element stands for the text.

const isFont = (node: Node | null): node is HTMLElement => node instanceof HTMLElement && node.localName === 'font'

/** Lets React go on with a page whose texts are translated. Call it before the first text is drawn. */
export function followTranslatedTexts(page: Document): void {
  const standIns = new WeakMap<Node, HTMLElement>()
  const { removeChild, insertBefore } = Node.prototype

  const changes = new MutationObserver((records) => {
    for (const { target } of records) showAgain(target)
  })
  const replacements = new MutationObserver(record)
  replacements.observe(page, { childList: true, subtree: true })

  function record(records: readonly MutationRecord[]): void {
    for (const { removedNodes, addedNodes, previousSibling, nextSibling } of records)
      for (const node of removedNodes) {
        const font = [...addedNodes, previousSibling, nextSibling].find(isFont)
        if (!(node instanceof Text) || !font) continue
        standIns.set(node, font)
        changes.observe(node, { characterData: true })
      }
  }

  /** A text that changed is shown in place of its translation, which browsers then translate again. */
  function showAgain(text: Node): void {
    const font = standIns.get(text)
    if (font?.isConnected && !text.isConnected) font.replaceWith(text)
  }

  /** What is in the parent for a node that was put into an element, or replaced by one. */
  function findInside(parent: Node, node: Node): Node | undefined {
    record(replacements.takeRecords())
    let inside: Node | null = node.parentNode === null ? (standIns.get(node) ?? null) : node
    while (inside && inside.parentNode !== parent) inside = inside.parentNode
    return isFont(inside) ? inside : undefined
  }

  Node.prototype.removeChild = function <Child extends Node>(this: Node, child: Child): Child {
    if (child.parentNode === this) return removeChild.call(this, child) as Child
    const inside = findInside(this, child)
    if (inside) removeChild.call(this, inside)
    else if (!(child instanceof Text)) removeChild.call(this, child) // fails, as it should
    return child
  }

  Node.prototype.insertBefore = function <Child extends Node>(this: Node, child: Child, before: Node | null): Child {
    if (before === null || before.parentNode === this) return insertBefore.call(this, child, before) as Child
    return insertBefore.call(this, child, findInside(this, before) ?? before) as Child
  }
}
