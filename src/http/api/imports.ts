import { type Static, Type } from 'typebox'
import { ROOT_FOLDER_ID } from '../../catalogue/folder.ts'
import { assertMayEdit } from '../../catalogue/may-edit.ts'
import { Failure } from '../../errors.ts'
import type { IdempotencyDeps } from '../../idempotency/idempotency.ts'
import { type ImportDeps, type RequestedImport, requestImport, requestReplacingImport } from '../../ingest/import.ts'
import { type ImportOutcome, MAX_LISTED_IMPORTS, requestImports } from '../../ingest/import-list.ts'
import { authenticateRequest } from '../server/caller.ts'
import type { App } from '../wire/app-type.ts'
import { EXAMPLE } from '../wire/examples.ts'
import { IdempotencyHeaders, jsonRepresentation, sendIdempotent } from '../wire/idempotency.ts'
import { IMPORTER, operation } from '../wire/operation.ts'
import { OwnFieldsBody, readMetadataParameters } from '../wire/own-fields.ts'

type ImportRoutesDeps = ImportDeps & IdempotencyDeps

const Imported = {
  url: Type.String({
    description: 'URL of the video, on the public internet; it may be signed',
    examples: [EXAMPLE.videoUrl],
  }),
  title: Type.Optional(Type.String({ description: 'if absent, the last part of the URL' })),
  upload_time: Type.Optional(
    Type.Union([Type.Integer({ minimum: 0 }), Type.String({ pattern: '^[0-9]{1,12}$' })], {
      description: 'Unix seconds: when the video was added where it comes from; now if absent',
    }),
  ),
  ...OwnFieldsBody,
}

const ImportBody = Type.Object({
  ...Imported,
  videoId: Type.Optional(
    Type.String({ description: 'the video whose file this replaces, which needs editor; it keeps its title and folder' }),
  ),
  folderId: Type.Optional(Type.String({ description: 'folder of the video; the root if absent' })),
})

const ImportReply = Type.Object({
  id: Type.String(),
  status: Type.Literal('Queued', { description: 'of the import; a video whose file is replaced stays ready' }),
  title: Type.String(),
})

const ListBody = Type.Object({
  imports: Type.Array(
    Type.Object({
      ...Imported,
      tags: Type.Optional(Type.Array(Type.String(), { description: 'of 1 to 255 characters each' })),
      folders: Type.Optional(
        Type.Array(Type.String(), {
          description: 'names, the outermost first; missing ones are created for callers with editor. If absent, the root',
          examples: [['Courses', 'Drawing']],
        }),
      ),
    }),
    { minItems: 1, maxItems: MAX_LISTED_IMPORTS },
  ),
})

const ListReply = Type.Object({
  imports: Type.Array(
    Type.Union([ImportReply, Type.Object({ message: Type.String({ description: 'why this one was not added' }) })]),
    { description: 'one for each entry, in the same order' },
  ),
})

export type ImportListBody = Static<typeof ListBody>
export type ImportListReply = Static<typeof ListReply>

/** Five hundred URLs, signed ones too. */
const MAX_LIST_BYTES = 1024 * 1024

/** Imports: videos that this server fetches (wire-contract.md, section 3). */
export function importRoutes(app: App, deps: ImportRoutesDeps): void {
  app.put(
    '/videos/importUrl',
    operation(IMPORTER, {
      summary: 'Import a video from a URL',
      description: 'An address that is invalid in itself is rejected; other errors make the video fail later, with a reason.',
      body: ImportBody,
      headers: IdempotencyHeaders,
      response: { 200: ImportReply },
    }),
    async (request, reply) => {
      const { url, videoId, ...fields } = request.body
      const { folderId, title, upload_time, externalId, metadata, ...form } = fields
      const holder = authenticateRequest(request)
      if (videoId !== undefined && Object.keys(fields).length > 0)
        throw new Failure(
          'invalid',
          `With "videoId" the import replaces a file: send no other field than "url". Change the title and all else with POST /api/videos/${videoId}.`,
        )
      if (videoId !== undefined) await assertMayEdit(deps, holder, 'editor', [videoId])
      return sendIdempotent(
        deps,
        { request, reply, accountId: holder.accountId },
        (alsoInTransaction) => {
          if (videoId !== undefined) return requestReplacingImport(deps, holder, { videoId, url }, alsoInTransaction)
          return requestImport(
            deps,
            holder,
            {
              ...{ url, title, externalId, metadata: readMetadataParameters(form) ?? metadata },
              uploadTimeS: toSeconds(upload_time),
              folderId: folderId || ROOT_FOLDER_ID,
            },
            alsoInTransaction,
          )
        },
        jsonRepresentation(toReply),
      )
    },
  )

  app.post(
    '/imports',
    {
      bodyLimit: MAX_LIST_BYTES,
      config: IMPORTER,
      schema: {
        summary: 'Import videos from a list of URLs',
        description: `At most ${MAX_LISTED_IMPORTS} in a call. Every entry that is valid becomes a video, and the server fetches them one after another.`,
        body: ListBody,
        headers: IdempotencyHeaders,
        response: { 200: ListReply },
      },
    },
    async (request, reply) => {
      const holder = authenticateRequest(request)
      const list = request.body.imports.map(({ upload_time, tags = [], folders = [], ...entry }) => ({
        ...entry,
        uploadTimeS: toSeconds(upload_time),
        tags,
        folders,
      }))
      return sendIdempotent(
        deps,
        { request, reply, accountId: holder.accountId },
        (alsoInTransaction) => requestImports(deps, holder, list, alsoInTransaction),
        jsonRepresentation((outcomes: ImportOutcome[]): ImportListReply => ({ imports: outcomes.map(toOutcomeReply) })),
      )
    },
  )
}

function toSeconds(uploadTime: number | string | undefined): number | undefined {
  return uploadTime === undefined ? undefined : Number(uploadTime)
}

function toReply({ videoId, title }: RequestedImport): Static<typeof ImportReply> {
  return { id: videoId, status: 'Queued', title }
}

function toOutcomeReply(outcome: ImportOutcome): ImportListReply['imports'][number] {
  return 'problem' in outcome ? { message: outcome.problem } : toReply(outcome)
}
