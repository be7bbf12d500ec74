import { type Static, Type } from 'typebox'
import type { CatalogueDeps, ListDeps } from '../../catalogue/catalogue-deps.ts'
import { createFolder, deleteFolder, editFolder, openFolder, ROOT_FOLDER_ID, searchFolders } from '../../catalogue/folder.ts'
import { Failure } from '../../errors.ts'
import { authenticateRequest, changedBy } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { EXAMPLE } from '../wire/examples.ts'
import { Flag, isOn } from '../wire/flag.ts'
import { isoTime } from '../wire/iso-time.ts'
import { operation } from '../wire/operation.ts'

const FolderParams = Type.Object({ id: Type.String({ description: 'of a folder, or root', examples: [EXAMPLE.folderId] }) })

const Named = Type.Object({ id: Type.String(), name: Type.String() })
const Placed = Type.Object({
  id: Type.String({ description: '32 lower-case hexadecimal digits, or root' }),
  name: Type.String(),
  parent: Type.Union([Type.String(), Type.Null()], { description: 'null: directly in the root' }),
})
const Counted = Type.Object({
  ...Placed.properties,
  videosCount: Type.Integer({ description: 'directly in it' }),
  foldersCount: Type.Integer({ description: 'directly in it' }),
})
const OpenReply = Type.Object({
  folderList: Type.Array(Counted, { description: 'by name' }),
  current: Placed,
  parent: Type.Union([Placed, Type.Null()]),
})

export type FolderContents = Static<typeof OpenReply>
export type FolderBody = Static<typeof Counted>

const SearchBody = Type.Object({
  name: Type.String({ description: 'the beginning of a name, case-insensitive; empty: all folders', examples: ['Cour'] }),
  searchExact: Type.Optional({ ...Flag, description: 'true: the whole name, character for character' }),
})
const SearchReply = Type.Object({
  folders: Type.Array(
    Type.Object({
      name: Type.String(),
      id: Type.String(),
      folderPath: Type.Array(Named, { description: 'the folders that contain it, innermost first; empty directly in the root' }),
      createdAt: Type.String({ description: 'ISO 8601, UTC, with milliseconds' }),
    }),
    { description: 'by name, a thousand at most' },
  ),
})

const Parent = Type.Optional(Type.Union([Type.String(), Type.Null()], { description: 'id of a folder; root or null: the root' }))
const CreateBody = Type.Object({
  name: Type.String({ description: '1 to 255 characters', examples: ['Courses'] }),
  parent: Parent,
})
const EditBody = Type.Object({
  name: Type.Optional(Type.String({ description: '1 to 255 characters', examples: ['Lessons'] })),
  parent: Parent,
})
const EditReply = Type.Object({ message: Type.Literal('Folder has been updated') })
const DeleteReply = Type.Object({ message: Type.Literal('Folder Deleted') })

export type FolderSearchBody = Static<typeof SearchReply>

/** Folders: list, search, create, rename, move, delete (wire-contract.md, section 3). */
export function folderRoutes(app: App, deps: CatalogueDeps & ListDeps): void {
  app.get(
    '/videos/folders/:id',
    operation('viewer', { summary: 'Contents of a folder', params: FolderParams, response: { 200: OpenReply } }),
    async (request) => {
      const { folder, folders, parent } = await openFolder(deps, authenticateRequest(request).accountId, request.params.id)
      // As in the contract, the root is null as a parent.
      const around = parent === undefined || parent.id === ROOT_FOLDER_ID ? null : placed(parent)
      return { folderList: folders.map(counted), current: placed(folder), parent: around }
    },
  )

  app.post(
    '/videos/folders/search',
    operation('viewer', { summary: 'Search folders', body: SearchBody, response: { 200: SearchReply } }),
    async (request) => {
      const { name, searchExact = false } = request.body
      const search = { name, isWhole: isOn(searchExact) }
      const folders = await searchFolders(deps, authenticateRequest(request).accountId, search)
      return {
        folders: folders.map(({ name, id, path, createdAtS }) => ({
          name,
          id,
          folderPath: path.map(({ id, name }) => ({ id, name })),
          createdAt: isoTime(createdAtS),
        })),
      }
    },
  )

  app.post(
    '/videos/folders',
    operation('editor', { summary: 'Create a folder', body: CreateBody, response: { 200: Counted } }),
    async (request) => {
      const holder = authenticateRequest(request)
      const { name, parent } = request.body
      return counted(await createFolder(deps, holder.accountId, holder, { name, parentId: parent || ROOT_FOLDER_ID }))
    },
  )

  app.put(
    '/videos/folders/:id',
    operation('editor', {
      summary: 'Rename or move a folder',
      params: FolderParams,
      body: EditBody,
      response: { 200: EditReply },
    }),
    async (request) => {
      await editFolder(deps, { ...changedBy(request), folderId: request.params.id, changes: readChanges(request.body) })
      return { message: 'Folder has been updated' as const }
    },
  )

  app.delete(
    '/videos/folders/:id',
    operation('editor', {
      summary: 'Delete a folder',
      description: 'Its contents move to its parent.',
      params: FolderParams,
      response: { 200: DeleteReply },
    }),
    async (request) => {
      const holder = authenticateRequest(request)
      await deleteFolder(deps, holder.accountId, holder, request.params.id)
      return { message: 'Folder Deleted' as const }
    },
  )
}

function readChanges({ name, parent }: Static<typeof EditBody>): { name?: string; parentId?: string } {
  if (name === undefined && parent === undefined) throw new Failure('invalid', 'Nothing to change. Send name, parent or both.')
  return { ...(name === undefined ? {} : { name }), ...(parent === undefined ? {} : { parentId: parent || ROOT_FOLDER_ID }) }
}

type FolderRow = Awaited<ReturnType<typeof openFolder>>['folders'][number]

function placed({ id, name, parentId }: FolderRow): Static<typeof Placed> {
  return { id, name, parent: parentId === ROOT_FOLDER_ID ? null : parentId }
}

function counted(folder: FolderRow): Static<typeof Counted> {
  return { ...placed(folder), videosCount: folder.videoCount, foldersCount: folder.folderCount }
}
