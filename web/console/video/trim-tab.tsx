import { Button, FileButton, Progress, RangeSlider, TextInput } from '@mantine/core'
import { useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import type { OneVideoBody, VideoBody } from '../../../src/http/api/video-body.ts'
import { callApi } from '../api.ts'
import { LIBRARY } from '../catalogue/queries.ts'
import { isUnderWay } from '../catalogue/status.ts'
import { ConfirmDialog } from '../ui/confirm-dialog.tsx'
import { FailureNotice } from '../ui/failure.tsx'
import { ReloadIcon, UploadIcon } from '../ui/icons.tsx'
import { Section } from '../ui/section.tsx'
import { useChange } from '../ui/use-change.ts'
import { formatBytes, formatDay, formatDuration, formatMoment } from '../units.ts'
import { useUploadList, useUploads } from '../upload/upload-provider.tsx'
import { isUnderWay as isBeingSent } from '../upload/uploads.ts'
import { formatStart, parseStart } from './chapter-lines.ts'
import { FitNotice } from './fit-notice.tsx'
import { FramePicture } from './frame-picture.tsx'
import { findPlayer, seekPlayer } from './page-player.ts'
import { audioQuery, videoQuery } from './queries.ts'
import styles from './trim-tab.module.css'
import { useMayEdit } from './use-may-edit.ts'

/** A part of the file of a video, or another file under the same link; and back to what it was before. */
export function TrimTab({ video: { id } }: { video: VideoBody }) {
  const { data: video } = useSuspenseQuery(videoQuery(id))
  const mayEdit = useMayEdit(id)
  if (!mayEdit) return <p>You may watch this video, but not change its file.</p>
  if (video.status !== 'ready') return <p>A video is trimmed or replaced once it is ready.</p>
  const isBusy = isUnderWay(video.status, video.replacement)
  const { trim = { startS: 0, endS: video.length, ofS: video.length } } = video
  return (
    <>
      <FitNotice videoId={id} />
      <TrimForm key={`${trim.startS} ${trim.endS} ${trim.ofS}`} video={video} trim={trim} isBusy={isBusy} />
      <ReplaceSection video={video} isBusy={isBusy} />
      {video.kept && <FormerSection videoId={id} kept={video.kept} isBusy={isBusy} />}
    </>
  )
}

type Trim = NonNullable<OneVideoBody['trim']>

/** Shorter than this the server makes no video. */
const MIN_LENGTH_S = 0.5
/** By so much the server rounds lengths: an end so near is that of the file. */
const ROUNDED_S = 0.05

/** `isBusy`: something is to replace the video already. */
type OfVideo = { video: OneVideoBody; isBusy: boolean }

function TrimForm({ video, trim, isBusy }: OfVideo & { trim: Trim }) {
  const { ofS } = trim
  const [startText, setStartText] = useState(() => formatStart(rounded(trim.startS)))
  const [endText, setEndText] = useState(() => formatStart(rounded(trim.endS)))
  const change = useChange({
    call: (body: { startS?: number; endS?: number }) => callApi<unknown>('PUT', `videos/${video.id}/trim`, { body }),
    announced: 'The trim has begun. Until it is complete, viewers see the video as before.',
    refreshes: LIBRARY,
  })
  const [startS, endS] = [parseStart(startText), parseStart(endText)]
  const [problem, where] = problemOf(startS, endS, ofS)
  const isSame = startS === rounded(trim.startS) && endS === rounded(trim.endS)
  const isWhole = startS === 0 && endS !== undefined && endS >= ofS - ROUNDED_S
  const shown: [number, number] = [startS ?? trim.startS, Math.min(endS ?? trim.endS, ofS)]
  const setTo = (which: 'start' | 'end', atS: number) =>
    (which === 'start' ? setStartText : setEndText)(formatStart(rounded(atS)))
  /** Pictures are of what plays now. */
  const inVideo = (atS: number | undefined) => (atS === undefined || atS > trim.endS + ROUNDED_S ? undefined : atS - trim.startS)
  const showInPlayer = (atS: number) => seekPlayer(Math.min(atS, trim.endS) - trim.startS)
  const slide = ([from, to]: [number, number]) => {
    if (from !== shown[0]) setTo('start', from)
    if (to !== shown[1]) setTo('end', to)
    showInPlayer(from === shown[0] ? to : from)
  }
  const takeTime = (which: 'start' | 'end') => setTo(which, trim.startS + (findPlayer()?.currentTime ?? 0))
  const isTrimmed = video.trim !== undefined
  return (
    <Section
      title="Trim"
      lead="Cuts the beginning and the end, exact to a frame. The whole file is kept: you can cut it otherwise, or not at all, whenever you like."
    >
      <form
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault()
          change.mutate({
            ...(startS !== undefined && { startS }),
            ...(endS !== undefined && endS < ofS - ROUNDED_S && { endS }),
          })
        }}
      >
        <RangeSlider
          className={styles.slider}
          min={0}
          max={ofS}
          step={ofS > 600 ? 1 : 0.1}
          minRange={MIN_LENGTH_S}
          value={shown}
          onChange={slide}
          label={formatStart}
          thumbFromLabel="Start"
          thumbToLabel="End"
          marks={isTrimmed ? [{ value: trim.startS }, { value: trim.endS }] : []}
        />
        <div className={styles.ends}>
          <TimeField
            label="Start"
            picture={<FramePicture videoId={video.id} timeS={inVideo(startS)} />}
            value={startText}
            error={where === 'start' ? problem : undefined}
            onChange={setStartText}
            onTake={() => takeTime('start')}
          />
          <TimeField
            label="End"
            picture={<FramePicture videoId={video.id} timeS={inVideo(endS)} />}
            value={endText}
            error={where === 'end' ? problem : undefined}
            onChange={setEndText}
            onTake={() => takeTime('end')}
          />
        </div>
        <p className={styles.lengths}>
          {isTrimmed && (
            <>
              Now {formatStart(rounded(trim.startS))} to {formatStart(rounded(trim.endS))} of the file plays.{' '}
            </>
          )}
          {startS !== undefined && endS !== undefined && problem === undefined && (
            <>
              {isSame ? 'Length' : 'New length'}: <strong>{formatDuration(endS - startS)}</strong> of {formatDuration(ofS)}.
            </>
          )}
        </p>
        {change.error && <FailureNotice error={change.error} />}
        <div className={styles.buttons}>
          <Button
            type="submit"
            loading={change.isPending}
            disabled={isSame || problem !== undefined || isBusy || (isWhole && !isTrimmed)}
          >
            Trim the video
          </Button>
          {isTrimmed && (
            <Button variant="default" disabled={change.isPending || isBusy} onClick={() => change.mutate({})}>
              Use the whole file
            </Button>
          )}
        </div>
      </form>
    </Section>
  )
}

type TimeFieldProps = {
  label: string
  picture: ReactNode
  value: string
  error: string | undefined
  onChange(value: string): void
  onTake(): void
}

/** A time, typed or taken from the player above. */
function TimeField({ label, picture, value, error, onChange, onTake }: TimeFieldProps) {
  return (
    <div className={styles.end}>
      {picture}
      <TextInput
        label={label}
        value={value}
        error={error}
        inputMode="text"
        autoComplete="off"
        onChange={({ target }) => onChange(target.value)}
      />
      <Button variant="default" aria-label={`${label} at the player’s time`} onClick={onTake}>
        Player’s time
      </Button>
    </div>
  )
}

function problemOf(startS: number | undefined, endS: number | undefined, ofS: number): [string?, ('start' | 'end')?] {
  if (startS === undefined) return [NO_TIME, 'start']
  if (endS === undefined) return [NO_TIME, 'end']
  if (endS > ofS + ROUNDED_S) return [`The file ends at ${formatStart(rounded(ofS))}.`, 'end']
  if (endS - startS < MIN_LENGTH_S) return ['The end must be at least half a second after the start.', 'end']
  return []
}

const NO_TIME = 'Write a time such as 12:30 or 0:07.5.'

/** To the millisecond. */
function rounded(seconds: number): number {
  return Math.round(1000 * seconds) / 1000
}

function ReplaceSection({ video, isBusy }: OfVideo) {
  const uploads = useUploads()
  const sent = useUploadList().find((upload) => upload.videoId === video.id && isBeingSent(upload))
  const added = useQuery(audioQuery(video.id)).data?.tracks.filter((track) => track.added) ?? []
  return (
    <Section
      title="Replace the file"
      lead="Links, embeds, title, captions and chapters stay. The video plays as before until the new file is encoded, and the former file is kept for 7 days."
    >
      {added.length > 0 && (
        <p>
          Audio tracks that were added go with the former file: {added.map(({ name }) => `“${name}”`).join(', ')}. Undo brings
          them back.
        </p>
      )}
      {sent ? (
        <div className={styles.sent}>
          <Progress
            value={(100 * sent.sentBytes) / Math.max(1, sent.sizeBytes)}
            aria-label="The new file is sent"
            className={styles.bar}
          />
          <p role="status">
            {Math.floor((100 * sent.sentBytes) / Math.max(1, sent.sizeBytes))} % of {formatBytes(sent.sizeBytes)} sent. Keep this
            tab open until all of it is.
          </p>
          <Button variant="default" onClick={() => uploads.cancel(sent.id)}>
            Cancel the upload
          </Button>
        </div>
      ) : (
        <div>
          <FileButton accept="video/*,.mkv,.ts,.mts,.m2ts,.mxf" onChange={(file) => file && void uploads.replace(video, file)}>
            {(props) => (
              <Button {...props} variant="default" leftSection={<UploadIcon size={16} />} disabled={isBusy}>
                Replace file
              </Button>
            )}
          </FileButton>
        </div>
      )}
    </Section>
  )
}

type Kept = NonNullable<OneVideoBody['kept']>

const UNDO = { replace: 'Undo the replacement', trim: 'Undo the trim', undo: 'Redo' } as const
const WAS = { replace: 'replaced', trim: 'trimmed', undo: 'undone' } as const

function FormerSection({ videoId, kept, isBusy }: { videoId: string; kept: Kept; isBusy: boolean }) {
  const [isAsking, setAsking] = useState(false)
  const undo = useChange({
    call: () => callApi<unknown>('POST', `videos/${videoId}/undo`),
    announced: 'The video plays the former version again.',
    refreshes: LIBRARY,
  })
  const [last] = kept
  const bytes = kept.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  const what = kept.length === 1 ? 'the former version' : `${kept.length} former versions`
  return (
    <Section
      title={kept.length === 1 ? 'Former version' : 'Former versions'}
      lead={`${kept.length === 1 ? 'One click plays it' : 'One click plays the first'} again, immediately, and keeps what plays now in its place. ${kept.length === 1 ? 'It counts' : 'They count'} ${formatBytes(bytes)} in your storage.`}
    >
      <ul className={styles.former}>
        {kept.map(({ file, length, sizeBytes, replacedBy, keptUntil }, index) => (
          <li key={`${keptUntil} ${file} ${length}`}>
            <div>
              <strong dir="auto">{file || 'The former file'}</strong>
              <span>
                {formatDuration(length)} · {formatBytes(sizeBytes)} · {WAS[replacedBy]} ·{' '}
                <span title={formatMoment(keptUntil)}>kept until {formatDay(keptUntil)}</span>
              </span>
            </div>
            {index === 0 && (
              <Button
                variant="default"
                leftSection={<ReloadIcon size={16} />}
                loading={undo.isPending}
                disabled={isBusy}
                onClick={() => undo.mutate()}
              >
                {UNDO[replacedBy]}
              </Button>
            )}
          </li>
        ))}
      </ul>
      {undo.error && <FailureNotice error={undo.error} />}
      <div>
        <Button variant="default" onClick={() => setAsking(true)}>
          {kept.length === 1 ? 'Delete it now' : 'Delete them now'}
        </Button>
      </div>
      {isAsking && (
        <ConfirmDialog
          title={`Delete ${what}?`}
          onClose={() => setAsking(false)}
          action="Delete for good"
          color="stop"
          call={() => callApi<unknown>('DELETE', `videos/${videoId}/kept`)}
          announced="The former versions have been deleted."
          refreshes={LIBRARY}
        >
          <p>
            This frees {formatBytes(bytes)}. {last && UNDO[last.replacedBy]} is then no longer possible, and viewers who still
            watch {kept.length === 1 ? 'it' : 'one of them'} must reload their page.
          </p>
        </ConfirmDialog>
      )}
    </Section>
  )
}
