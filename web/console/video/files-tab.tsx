import { Button } from '@mantine/core'
import { useMutation, useSuspenseQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { VideoFileBody } from '../../../src/http/api/files.ts'
import type { VideoBody } from '../../../src/http/api/video-body.ts'
import { callApi, csvUrl } from '../api.ts'
import { ConfirmDialog } from '../ui/confirm-dialog.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { FailureNotice } from '../ui/failure.tsx'
import { RowButton } from '../ui/row-button.tsx'
import { Section } from '../ui/section.tsx'
import { StateWord } from '../ui/state-word.tsx'
import { useChange } from '../ui/use-change.ts'
import { formatBytes, formatCount } from '../units.ts'
import { EncodeAgain } from './encode-again.tsx'
import { filesQuery, fileUrl, isBeingMade } from './queries.ts'
import { useMayEdit } from './use-may-edit.ts'
import styles from './video-page.module.css'

const KINDS: Readonly<Record<string, string>> = {
  original: 'Uploaded file',
  poster: 'Poster',
  desktop: 'Video rendition',
  mobile: 'Video rendition',
  audio: 'Audio rendition',
  caption: 'Captions',
  mp4: 'MP4',
}

/** What is stored of the video: its renditions, and files to download. */
export function FilesTab({ video }: { video: VideoBody }) {
  const mayEdit = useMayEdit(video.id)
  const { data: files } = useSuspenseQuery(filesQuery(video.id))
  const [removed, setRemoved] = useState<VideoFileBody>()
  const download = useMutation({
    mutationFn: (file: VideoFileBody) => fileUrl(video.id, file.id),
    onSuccess: (url) => location.assign(url),
  })
  const makeMp4 = useChange({
    call: () => callApi<unknown>('POST', `videos/${video.id}/files`, { body: { type: 'mp4' } }),
    refreshes: [filesQuery(video.id).queryKey],
  })
  const actions: Column<VideoFileBody> = {
    name: 'Actions',
    kind: 'actions',
    cell: (file) => (
      <span className={styles.row}>
        {file.isDownloadable === 1 && (
          <RowButton aria-label={`Download ${file.name}`} onClick={() => download.mutate(file)}>
            Download
          </RowButton>
        )}
        {mayEdit && file.isDeletable === 1 && (
          <RowButton aria-label={`Delete ${file.name}`} onClick={() => setRemoved(file)}>
            Delete
          </RowButton>
        )}
      </span>
    ),
  }
  const hasMp4 = files.some(({ type, enabled }) => type === 'mp4' && enabled === 1)
  return (
    <Section
      title="Renditions and files"
      lead="The player chooses a rendition by the viewer’s connection and screen. Renditions are stored encrypted."
      actions={
        mayEdit &&
        video.status === 'ready' && (
          <span className={styles.row}>
            {!hasMp4 && (
              <Button variant="default" loading={makeMp4.isPending} onClick={() => makeMp4.mutate()}>
                Make an MP4
              </Button>
            )}
            <EncodeAgain video={video} />
          </span>
        )
      }
    >
      {(download.error ?? makeMp4.error) && <FailureNotice error={download.error ?? makeMp4.error} />}
      <DataTable
        label="Files"
        csv={csvUrl(`videos/${video.id}/files`)}
        columns={[...COLUMNS, actions]}
        rows={files.filter(({ enabled, error }) => enabled === 1 || error !== undefined)}
        keyOf={({ id }) => id}
        empty={<p>Nothing is stored yet.</p>}
      />
      {removed && (
        <ConfirmDialog
          title={`Delete ${removed.name}?`}
          onClose={() => setRemoved(undefined)}
          action="Delete"
          color="stop"
          call={() => callApi<unknown>('DELETE', `videos/${video.id}/files/${removed.id}`)}
          announced="The file has been deleted."
          refreshes={[['videos']]}
        >
          <p>This cannot be undone.</p>
        </ConfirmDialog>
      )}
    </Section>
  )
}

const COLUMNS: Column<VideoFileBody>[] = [
  { name: 'What', kind: 'title', cell: ({ type }) => KINDS[type] ?? type },
  { name: 'Resolution', cell: ({ width, height }) => (width > 0 ? `${width} × ${height}` : undefined) },
  {
    name: 'Codec',
    cell: ({ video_codec, audio_codec }) => [video_codec, audio_codec].filter((codec) => codec !== '').join(', ') || undefined,
  },
  { name: 'Bitrate', kind: 'number', cell: ({ bitrate }) => (bitrate > 0 ? `${formatCount(bitrate)} kbit/s` : undefined) },
  { name: 'Size', kind: 'number', cell: ({ size }) => formatBytes(size) },
  { name: 'State', cell: (file) => <FileState file={file} /> },
]

function FileState({ file }: { file: VideoFileBody }) {
  if (file.error !== undefined) return <StateWord color="stop">{file.error}</StateWord>
  if (isBeingMade(file)) return <StateWord color="warn">Being made</StateWord>
  return <StateWord color="ok">Ready</StateWord>
}
