/** A file to upload, and the folders in which it was dropped or chosen. */
export type ChosenFile = { file: File; folders: readonly string[] }

/** Recorders and converters write these; some of them browsers know no type of. */
const VIDEO_NAMES = /\.(3g2|3gp|asf|avi|dv|f4v|flv|m2ts|m2v|m4v|mkv|mov|mp4|mpe?g|mts|mxf|ogm|ogv|qt|ts|vob|webm|wmv)$/i

/** What looks like a video, by its type or name, and the names of what does not. */
export function sortOut(chosen: readonly ChosenFile[]): { videos: ChosenFile[]; others: string[] } {
  const isVideo = ({ file }: ChosenFile) =>
    !file.name.startsWith('.') && (file.type.startsWith('video/') || VIDEO_NAMES.test(file.name))
  const others = chosen.filter((one) => !isVideo(one) && !one.file.name.startsWith('.'))
  return { videos: chosen.filter(isVideo), others: others.map(({ file }) => file.name) }
}

/** Of an input for files, or for a whole folder. */
export function readInput(files: Iterable<File>): ChosenFile[] {
  return Array.from(files, (file) => ({ file, folders: file.webkitRelativePath.split('/').slice(0, -1) }))
}

/** The files of a drop, and those in its folders. To be called during the event: after it the browser has forgotten what was dropped. */
export function readDrop(transfer: DataTransfer): Promise<ChosenFile[]> {
  const items = Array.from(transfer.items).filter(({ kind }) => kind === 'file')
  const reading = items.map(async (item) => {
    const entry = item.webkitGetAsEntry()
    if (entry) return readEntry(entry, [])
    const file = item.getAsFile()
    return file ? [{ file, folders: [] }] : []
  })
  return Promise.all(reading).then((found) => found.flat())
}

async function readEntry(entry: FileSystemEntry, folders: readonly string[]): Promise<ChosenFile[]> {
  if (isFile(entry)) {
    const file = await new Promise<File>((resolve, reject) => entry.file(resolve, reject))
    return [{ file, folders }]
  }
  if (!isFolder(entry)) return []
  const reader = entry.createReader()
  const found: ChosenFile[] = []
  for (;;) {
    // A hundred at a time, in the order of the folder; an empty answer is the end.
    const entries = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject))
    if (entries.length === 0) return found
    for (const inner of entries) found.push(...(await readEntry(inner, [...folders, entry.name])))
  }
}

function isFile(entry: FileSystemEntry): entry is FileSystemFileEntry {
  return entry.isFile
}

function isFolder(entry: FileSystemEntry): entry is FileSystemDirectoryEntry {
  return entry.isDirectory
}
