// What a file is, by its name and its first bytes: what is surely no video is not sent.

/** Recorders and converters write these; some of them browsers know no type of. */
const VIDEO_NAMES = /\.(3g2|3gp|asf|avi|f4v|flv|m2ts|m4v|mkv|mov|mp4|mpe?g|mts|mxf|ogm|ogv|qt|ts|vob|webm|wmv)$/i

/** Videos in containers, or without one, that the server does not read. */
const UNREAD_NAMES = /\.(dv|gif|h26[45]|hevc|ivf|m2v|nut|rm|rmvb|y4m)$/i

type Kind = { what: string; isSo(head: string): boolean }

const starts =
  (...beginnings: string[]) =>
  (head: string) =>
    beginnings.some((beginning) => head.startsWith(beginning))
/** The same container as AVI, whose kind is its ninth to twelfth byte. */
const isRiff = (kind: string) => (head: string) => head.startsWith('RIFF') && head.startsWith(kind, 8)

/** What gets a video's name by mistake, by its first bytes: each a character of the same number. */
const OTHER_KINDS: readonly Kind[] = [
  { what: 'a PDF file', isSo: starts('%PDF') },
  { what: 'an archive', isSo: starts('PK\x03\x04', 'Rar!', '7z\xbc\xaf', '\x1f\x8b') },
  { what: 'an image', isSo: starts('\x89PNG', '\xff\xd8\xff', 'GIF8') },
  { what: 'an image', isSo: isRiff('WEBP') },
  { what: 'an audio file', isSo: starts('ID3', 'fLaC') },
  { what: 'an audio file', isSo: isRiff('WAVE') },
  { what: 'a program', isSo: starts('MZ', '\x7fELF') },
  { what: 'a web page', isSo: (head) => /^\s*<(!doctype|html)/i.test(head) },
  { what: 'empty space, as if its download had not been finished', isSo: (head) => isAll(head, (byte) => byte === 0) },
  { what: 'a text', isSo: (head) => isAll(head, (byte) => byte >= 0x20 || (byte >= 0x09 && byte <= 0x0d)) },
]

function isAll(head: string, isSuch: (byte: number) => boolean): boolean {
  return Array.from(head).every((character) => isSuch(character.charCodeAt(0)))
}

const FIRST_BYTES = 4096

/** Why a file is not sent, as the end of a sentence that begins with its name; undefined: it may be a video. */
export async function whyNoVideo(file: File): Promise<string | undefined> {
  if (UNREAD_NAMES.test(file.name)) return 'is in a format that is not read here: convert it to MP4'
  if (!file.type.startsWith('video/') && !VIDEO_NAMES.test(file.name)) return 'is no video'
  if (file.size === 0) return 'is empty (0 bytes)'
  const head = await file
    .slice(0, FIRST_BYTES)
    .arrayBuffer()
    .catch(() => undefined)
  if (!head) return 'cannot be read'
  const text = String.fromCharCode(...new Uint8Array(head))
  const other = OTHER_KINDS.find(({ isSo }) => isSo(text))
  return other && `is ${other.what}`
}

/** Whether the file is still as it was when it was chosen. */
export async function isReadable(file: File): Promise<boolean> {
  return file
    .slice(0, 1)
    .arrayBuffer()
    .then(
      () => true,
      () => false,
    )
}
