/** A file to upload, and the folders in which it was dropped or chosen. */
export type ChosenFile = { file: File; folders: readonly string[] }

const BY_NAME = new Intl.Collator(undefined, { numeric: true })

/** Of an input for files, in their order, or for a whole folder, by the names of its files. */
export function readInput(files: Iterable<File>): ChosenFile[] {
  return Array.from(files)
    .toSorted((a, b) => BY_NAME.compare(a.webkitRelativePath, b.webkitRelativePath))
    .map((file) => ({ file, folders: file.webkitRelativePath.split('/').slice(0, -1) }))
}

/** The files of a drop in their order, and those in its folders by their names. To be called during the event: after it the browser has forgotten what was dropped. */
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
  const found: ChosenFile[] = []
  const entries = await readFolder(entry)
  for (const inner of entries.toSorted((a, b) => BY_NAME.compare(a.name, b.name)))
    found.push(...(await readEntry(inner, [...folders, entry.name])))
  return found
}

/** A browser gives a hundred entries at a time, in no order; none is the end. */
async function readFolder(folder: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = folder.createReader()
  const found: FileSystemEntry[] = []
  for (;;) {
    const entries = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject))
    if (entries.length === 0) return found
    found.push(...entries)
  }
}

function isFile(entry: FileSystemEntry): entry is FileSystemFileEntry {
  return entry.isFile
}

function isFolder(entry: FileSystemEntry): entry is FileSystemDirectoryEntry {
  return entry.isDirectory
}
