import { Button } from '@mantine/core'
import { useMutation, useSuspenseQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { VideoFileBody } from '../../../src/http/api/files.ts'
import type { VideoBody } from '../../../src/http/api/video-body.ts'
import { callApi, csvUrl, sendForm } from '../api.ts'
import { accountQuery } from '../system/queries.ts'
import { useAnnounce } from '../ui/announcements.tsx'
import { ConfirmDialog } from '../ui/confirm-dialog.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { FailureNotice } from '../ui/failure.tsx'
import forms from '../ui/form.module.css'
import { languageName } from '../ui/language-name.ts'
import { RowButton } from '../ui/row-button.tsx'
import { Section } from '../ui/section.tsx'
import { useChange } from '../ui/use-change.ts'
import { formatBytes } from '../units.ts'
import { CaptionEditor } from './caption-editor.tsx'
import { countLines } from './fit-notice.tsx'
import { ChooseFile, LanguageField } from './language-fields.tsx'
import { filesQuery, isBeingMade } from './queries.ts'
import { useMayEdit } from './use-may-edit.ts'
import { useRefreshCaptions } from './use-refresh-captions.ts'
import styles from './video-page.module.css'

/** Since the video was trimmed, or got another file. */
const NOT_SHOWN: Column<VideoFileBody> = {
  name: 'Not shown',
  cell: ({ doesNotFit }) => doesNotFit !== undefined && `${countLines(doesNotFit)} outside the video`,
}

/** Captions by language: uploaded, edited line by line with the player above, and deleted. */
export function CaptionsTab({ video: { id } }: { video: VideoBody }) {
  const { data: files } = useSuspenseQuery(filesQuery(id))
  const mayEdit = useMayEdit(id)
  const [edited, setEdited] = useState<VideoFileBody>()
  const [removed, setRemoved] = useState<VideoFileBody>()
  // Not those that newer ones replaced.
  const captions = files.filter((file) => file.type === 'caption' && (file.enabled === 1 || file.hidden === 1 || file.size === 0))
  const columns: Column<VideoFileBody>[] = [
    { name: 'Language', kind: 'title', cell: captionsName },
    { name: 'Code', cell: ({ lang }) => lang },
    { name: 'Viewers', cell: visibility },
    { name: 'Size', kind: 'number', cell: ({ size }) => (size === 0 ? '' : formatBytes(size)) },
    ...(captions.some(({ doesNotFit }) => doesNotFit !== undefined) ? [NOT_SHOWN] : []),
    ...(mayEdit
      ? [
          {
            name: 'Actions',
            kind: 'actions' as const,
            cell: (file: VideoFileBody) => (
              <span className={styles.row}>
                {file.size > 0 && <ShowButton videoId={id} file={file} />}
                {file.size > 0 && (
                  <RowButton onClick={() => setEdited(file)} aria-label={`Edit lines: ${captionsName(file)}`}>
                    Edit lines
                  </RowButton>
                )}
                {file.automatic && file.size > 0 && <CheckedButton videoId={id} file={file} />}
                {file.progress === undefined ? (
                  <RowButton onClick={() => setRemoved(file)} aria-label={`Delete ${captionsName(file)}`}>
                    Delete
                  </RowButton>
                ) : (
                  <CancelButton videoId={id} file={file} />
                )}
              </span>
            ),
          },
        ]
      : []),
  ]
  return (
    <>
      <Section title="Captions">
        <DataTable
          label="Captions"
          csv={csvUrl(`videos/${id}/files`)}
          columns={columns}
          rows={captions}
          keyOf={({ id }) => id}
          empty={<p>No captions yet. WebVTT and SRT files are accepted, one for each language.</p>}
        />
      </Section>
      {mayEdit && edited === undefined && <UploadCaptions videoId={id} />}
      {edited && <CaptionEditor key={edited.id} videoId={id} file={edited} onClose={() => setEdited(undefined)} />}
      {removed && <DeleteCaptions videoId={id} file={removed} onClose={() => setRemoved(undefined)} />}
    </>
  )
}

function captionsName({ lang, title }: VideoFileBody): string {
  return title === undefined ? languageName(lang) : `${languageName(lang)}, “${title}”`
}

function visibility(file: VideoFileBody): string {
  if (file.error !== undefined) return file.error
  if (file.progress !== undefined) return `Being transcribed, ${Math.round(file.progress * 100)} %`
  if (isBeingMade(file)) return 'Being read out of the file'
  return `${file.enabled === 1 ? 'Shown' : 'Hidden'}${file.automatic ? ', automatic' : ''}`
}

type CaptionsProps = { videoId: string; file: VideoFileBody }

function CheckedButton({ videoId, file }: CaptionsProps) {
  const refresh = useRefreshCaptions(videoId)
  const check = useChange({
    call: () => callApi<unknown>('PUT', `videos/${videoId}/files/${file.id}`, { body: { automatic: 0 } }),
    announced: `Captions in ${captionsName(file)} are no longer called automatic.`,
    onDone: refresh,
    refreshes: [],
  })
  return (
    <RowButton onClick={() => check.mutate()} disabled={check.isPending} aria-label={`Mark as checked: ${captionsName(file)}`}>
      Mark as checked
    </RowButton>
  )
}

function CancelButton({ videoId, file }: CaptionsProps) {
  const cancel = useChange({
    call: () => callApi<unknown>('DELETE', `videos/${videoId}/files/${file.id}`),
    announced: 'The transcription has been cancelled.',
    refreshes: [filesQuery(videoId).queryKey],
  })
  return (
    <RowButton
      onClick={() => cancel.mutate()}
      disabled={cancel.isPending}
      aria-label={`Cancel the transcription in ${captionsName(file)}`}
    >
      Cancel
    </RowButton>
  )
}

function ShowButton({ videoId, file }: CaptionsProps) {
  const announce = useAnnounce()
  const refresh = useRefreshCaptions(videoId)
  const isShown = file.enabled === 1
  const show = useMutation({
    mutationFn: () => callApi<unknown>('PUT', `videos/${videoId}/files/${file.id}`, { body: { enabled: isShown ? 0 : 1 } }),
    async onSuccess() {
      announce(`Captions in ${captionsName(file)} are ${isShown ? 'hidden from' : 'shown to'} viewers.`)
      await refresh()
    },
    onError: ({ message }) => announce(message),
  })
  return (
    <RowButton
      onClick={() => show.mutate()}
      disabled={show.isPending}
      aria-label={`${isShown ? 'Hide' : 'Show'} ${captionsName(file)}`}
    >
      {isShown ? 'Hide' : 'Show'}
    </RowButton>
  )
}

function UploadCaptions({ videoId }: { videoId: string }) {
  const announce = useAnnounce()
  const refresh = useRefreshCaptions(videoId)
  const [language, setLanguage] = useState(() => navigator.language.slice(0, 2))
  const upload = useMutation({
    mutationFn: (file: File) => sendForm<unknown>(`videos/${videoId}/files`, file, { language }),
    async onSuccess() {
      announce(`Captions in ${languageName(language)} have been added.`)
      await refresh()
    },
  })
  const { data: account } = useSuspenseQuery(accountQuery)
  const transcribe = useChange({
    call: () => callApi<unknown>('POST', `videos/${videoId}/files`, { body: { type: 'caption', language } }),
    announced: `Captions in ${languageName(language)} are being made of the speech.`,
    refreshes: [filesQuery(videoId).queryKey],
  })
  const lead = account.transcribes
    ? 'From a file, which replaces captions in the same language; or made of the speech, as automatic ones.'
    : 'Captions that are there in the same language are replaced.'
  return (
    <Section title="Add captions" lead={lead}>
      <div className={forms.form}>
        <LanguageField value={language} onChange={setLanguage} />
        {(upload.error ?? transcribe.error) && <FailureNotice error={upload.error ?? transcribe.error} />}
        <div className={styles.row}>
          <ChooseFile
            accept=".vtt,.srt,text/vtt"
            language={language}
            isSending={upload.isPending}
            onChoose={(file) => upload.mutate(file)}
          />
          {account.transcribes && (
            <Button
              variant="default"
              loading={transcribe.isPending}
              disabled={language.trim() === ''}
              onClick={() => transcribe.mutate()}
            >
              Transcribe
            </Button>
          )}
        </div>
      </div>
    </Section>
  )
}

function DeleteCaptions({ videoId, file, onClose }: { videoId: string; file: VideoFileBody; onClose(): void }) {
  const refresh = useRefreshCaptions(videoId)
  return (
    <ConfirmDialog
      title={`Delete the captions in ${languageName(file.lang)}?`}
      onClose={onClose}
      action="Delete"
      color="stop"
      call={() => callApi<unknown>('DELETE', `videos/${videoId}/files/${file.id}`)}
      onDone={() => {
        onClose()
        return refresh()
      }}
      refreshes={[]}
    >
      <p>This cannot be undone. Viewers who watch now keep them until they reload.</p>
    </ConfirmDialog>
  )
}
