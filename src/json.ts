/** No value that anyone sends is deeper, and recursion over one that is not is safe. */
export const MAX_DEPTH = 64

/** @returns undefined for text that is not JSON, or is nested more than `MAX_DEPTH` deep */
export function parseJson(text: string): unknown {
  if (isNestedTooDeep(text)) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Whether JSON is nested more than `MAX_DEPTH` deep, found by one scan, before it is parsed. */
export function isNestedTooDeep(text: string): boolean {
  let depth = 0
  let isInString = false
  for (let at = 0; at < text.length && depth <= MAX_DEPTH; at++) {
    const char = text[at]
    if (isInString && char === '\\') at += 1
    else if (char === '"') isInString = !isInString
    else if (isInString) continue
    else if (char === '{' || char === '[') depth += 1
    else if (char === '}' || char === ']') depth -= 1
  }
  return depth > MAX_DEPTH
}
