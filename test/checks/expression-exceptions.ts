/** Expressions that recheck does not find linear, and why each may stay. */
export const EXCEPTIONS: Readonly<Record<string, string>> = {}
