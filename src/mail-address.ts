/** The longest that SMTP can carry (RFC 5321, section 4.5.3.1.3). */
export const MAX_ADDRESS_LENGTH = 254

/** Whether it is one plain address: no name, comment, list or control character that would reach a header of a mail. */
export function isMailAddress(text: string): boolean {
  return text.length <= MAX_ADDRESS_LENGTH && /^[^\s\p{C}@<>()[\],;:"\\]+@[^\s\p{C}@<>()[\],;:"\\]+$/u.test(text)
}
