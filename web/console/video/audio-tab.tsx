import { Progress } from '@mantine/core'
import { useMutation, useQueryClient, useSuspenseQuery } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import type { AudioTracksBody } from '../../../src/http/api/audio.ts'
import type { VideoBody } from '../../../src/http/api/video-body.ts'
import { callApi, csvUrl } from '../api.ts'
import { useAnnounce } from '../ui/announcements.tsx'
import { ConfirmDialog } from '../ui/confirm-dialog.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { FailureNotice } from '../ui/failure.tsx'
import { languageName } from '../ui/language-name.ts'
import { RowButton } from '../ui/row-button.tsx'
import { Section } from '../ui/section.tsx'
import { formatDuration } from '../units.ts'
import { AddAudio } from './add-audio.tsx'
import { LanguageField, TrackNameField } from './language-fields.tsx'
import { audioQuery, previewQuery } from './queries.ts'
import { useMayEdit } from './use-may-edit.ts'
import styles from './video-page.module.css'

type AudioTrack = AudioTracksBody['tracks'][number]

/** The audio tracks that viewers choose among: their names and languages, and which one plays by default. */
export function AudioTab({ video: { id, status } }: { video: VideoBody }) {
  const { tracks } = useSuspenseQuery(audioQuery(id)).data
  const mayEdit = useMayEdit(id)
  const [edited, setEdited] = useState<AudioTrack>()
  const [removed, setRemoved] = useState<AudioTrack>()
  useReadyInPreview(id, tracks)
  const makeDefault = useChangeTrack(id, ({ name }: AudioTrack) => `“${name}” plays unless a viewer chooses another.`)
  const columns: Column<AudioTrack>[] = [
    { name: 'Name', kind: 'title', cell: ({ name }) => name },
    { name: 'Language', cell: ({ language }) => (language === undefined ? '–' : languageName(language)) },
    { name: 'Plays', cell: (track) => <State track={track} /> },
    ...(mayEdit
      ? [
          {
            name: 'Actions',
            kind: 'actions' as const,
            cell: (track: AudioTrack) => (
              <span className={styles.row}>
                {track.state === 'ready' && (
                  <RowButton onClick={() => setEdited(track)} aria-label={`Edit ${track.name}`}>
                    Edit
                  </RowButton>
                )}
                {track.added && (
                  <RowButton onClick={() => setRemoved(track)} aria-label={`Remove ${track.name}`}>
                    Remove
                  </RowButton>
                )}
                {track.state === 'ready' && !track.default && (
                  <RowButton
                    onClick={() => makeDefault.mutate({ track, change: { default: true } })}
                    aria-label={`Make default: ${track.name}`}
                  >
                    Make default
                  </RowButton>
                )}
              </span>
            ),
          },
        ]
      : []),
  ]
  return (
    <>
      <Section
        title="Audio tracks"
        lead="Those of the file, and those that were added. With several, viewers choose in the player."
      >
        {makeDefault.error && <FailureNotice error={makeDefault.error} />}
        <DataTable
          label="Audio tracks"
          csv={csvUrl(`videos/${id}/audio`)}
          columns={columns}
          rows={tracks}
          keyOf={(track) => track.id}
          empty={<p>None: the video is silent, or its file has not been examined yet.</p>}
        />
        {edited && <EditTrack key={edited.id} videoId={id} track={edited} onClose={() => setEdited(undefined)} />}
        {removed && <RemoveTrack videoId={id} track={removed} onClose={() => setRemoved(undefined)} />}
      </Section>
      {mayEdit && status === 'ready' && <AddAudio videoId={id} />}
    </>
  )
}

const NOT_READY = { waiting: 'Waits to be encoded', failed: 'Failed' } as const

function State({ track }: { track: AudioTrack }) {
  if (track.state !== 'encoding') return describeState(track)
  const percent = Math.floor(100 * (track.progress ?? 0))
  return (
    <div>
      <Progress value={percent} aria-label={`Encoding of ${track.name}`} mb={4} />
      Being encoded, {percent} %
    </div>
  )
}

function describeState({ state, error, differenceS = 0, default: isDefault }: AudioTrack): string {
  if (state === 'waiting' || state === 'failed') return error ?? NOT_READY[state]
  const plays = isDefault ? 'by default' : 'when chosen'
  const seconds = formatDuration(Math.abs(differenceS))
  if (differenceS > 0) return `${plays}; its file is ${seconds} longer than the video, and its end is cut off`
  return differenceS < 0 ? `${plays}; its file is ${seconds} shorter than the video, and silent from there` : plays
}

/** The player above is loaded again when a track can be played. */
function useReadyInPreview(videoId: string, tracks: readonly AudioTrack[]): void {
  const queries = useQueryClient()
  const readyIds = tracks.flatMap(({ id, state }) => (state === 'ready' ? id : [])).join()
  const shown = useRef(readyIds)
  useEffect(() => {
    if (shown.current === readyIds) return
    shown.current = readyIds
    void queries.resetQueries({ queryKey: previewQuery(videoId).queryKey })
  }, [queries, videoId, readyIds])
}

function RemoveTrack({ videoId, track, onClose }: { videoId: string; track: AudioTrack; onClose(): void }) {
  const queries = useQueryClient()
  return (
    <ConfirmDialog
      title={`Remove “${track.name}”?`}
      onClose={onClose}
      action="Remove"
      color="stop"
      call={() => callApi<AudioTracksBody>('DELETE', `videos/${videoId}/audio/${track.id}`)}
      announced={`“${track.name}” has been removed.`}
      onDone={(left) => {
        onClose()
        queries.setQueryData(audioQuery(videoId).queryKey, left)
      }}
      refreshes={[]}
    >
      <p>
        The track and its file are deleted. This cannot be undone. For viewers who have chosen it, the default track plays on.
      </p>
    </ConfirmDialog>
  )
}

function EditTrack({ videoId, track, onClose }: { videoId: string; track: AudioTrack; onClose(): void }) {
  const [name, setName] = useState(track.name)
  const [language, setLanguage] = useState(track.language ?? '')
  const save = useChangeTrack(videoId, () => 'The audio track has been saved. The player above shows it.')
  const submit = () => {
    const isNamed = name.trim() !== track.name
    save.mutate({ track, change: { ...(isNamed && { name }), language } }, { onSuccess: onClose })
  }
  return (
    <Dialog title={`Edit ${track.name}`} onClose={onClose} action="Save" change={save} onSubmit={submit}>
      <TrackNameField value={name} hint="Empty: as the file has it." onChange={setName} />
      <LanguageField value={language} hint="Empty: as the file has it." onChange={setLanguage} />
    </Dialog>
  )
}

type Change = { track: AudioTrack; change: { name?: string; language?: string; default?: true } }

/** The player above is loaded again with what has changed. */
function useChangeTrack(videoId: string, announcement: (track: AudioTrack) => string) {
  const announce = useAnnounce()
  const queries = useQueryClient()
  return useMutation({
    mutationFn: ({ track, change }: Change) =>
      callApi<AudioTracksBody>('PUT', `videos/${videoId}/audio/${track.id}`, { body: change }),
    async onSuccess(saved, { track }) {
      announce(announcement(track))
      queries.setQueryData(audioQuery(videoId).queryKey, saved)
      await queries.resetQueries({ queryKey: previewQuery(videoId).queryKey })
    },
  })
}
