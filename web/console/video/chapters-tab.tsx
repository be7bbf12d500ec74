import { Button, Textarea } from '@mantine/core'
import { useMutation, useQueryClient, useSuspenseQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { VideoBody } from '../../../src/http/api/video-body.ts'
import type { ChaptersBody, StoredChaptersBody } from '../../../src/http/wire/chapters.ts'
import { callApi } from '../api.ts'
import { useAnnounce } from '../ui/announcements.tsx'
import { FailureNotice, Notice } from '../ui/failure.tsx'
import forms from '../ui/form.module.css'
import { Section } from '../ui/section.tsx'
import { formatStart, parseChapterLines, toChapterLines } from './chapter-lines.ts'
import styles from './chapters-tab.module.css'
import { FramePicture } from './frame-picture.tsx'
import { LanguageField } from './language-fields.tsx'
import { findPlayer, seekPlayer } from './page-player.ts'
import { chaptersQuery, previewQuery } from './queries.ts'
import { useMayEdit } from './use-may-edit.ts'

/** The chapters of a video as lines of text, with the player above. */
export function ChaptersTab({ video: { id } }: { video: VideoBody }) {
  const { data: stored } = useSuspenseQuery(chaptersQuery(id))
  const mayEdit = useMayEdit(id)
  if (mayEdit) return <ChaptersForm videoId={id} stored={stored} />
  return (
    <Section title="Chapters">
      <ChapterList videoId={id} chapters={stored.chapters} />
    </Section>
  )
}

function ChaptersForm({ videoId, stored }: { videoId: string; stored: StoredChaptersBody }) {
  const announce = useAnnounce()
  const queries = useQueryClient()
  const [text, setText] = useState(() => toChapterLines(stored.chapters))
  const [language, setLanguage] = useState(stored.language ?? '')
  const { chapters, problem } = parseChapterLines(text)
  const save = useMutation({
    mutationFn: () => {
      const body = { ...(language.trim() !== '' && { language: language.trim() }), chapters }
      return callApi<ChaptersBody>('PUT', `videos/${videoId}/chapters`, { body })
    },
    async onSuccess(saved) {
      announce(
        saved.chapters.length === 0
          ? 'The video has no chapters now.'
          : 'The chapters have been saved. The player above shows them.',
      )
      queries.setQueryData(chaptersQuery(videoId).queryKey, saved)
      setText(toChapterLines(saved.chapters))
      await queries.resetQueries({ queryKey: previewQuery(videoId).queryKey })
    },
  })
  const addTime = () => {
    const startS = Math.floor(findPlayer()?.currentTime ?? 0)
    setText(`${text.trimEnd()}${text.trim() === '' ? '' : '\n'}${formatStart(startS)} `)
  }
  return (
    <Section
      title="Chapters"
      lead="A line for each: when it begins, and its title. Paste them from a description, or pause the player above where one begins."
    >
      <div className={forms.form}>
        <Textarea
          label="Chapters, one a line"
          placeholder={'0:00 Introduction\n12:30 Light and shadow'}
          autosize
          minRows={5}
          maxRows={20}
          value={text}
          error={problem}
          onChange={({ target }) => setText(target.value)}
        />
        <LanguageField
          label="Language of the titles"
          hint="Screen readers pronounce them by it."
          value={language}
          onChange={setLanguage}
        />
        {stored.doesNotFit !== undefined && (
          <Notice
            isWarning
            text={`${countChapters(stored.doesNotFit)} before or behind what the video plays now, and not shown. If you save, only the chapters above remain.`}
          />
        )}
        {save.error && <FailureNotice error={save.error} />}
        <div className={styles.buttons}>
          <Button variant="default" onClick={addTime}>
            Add the player’s time
          </Button>
          <Button loading={save.isPending} disabled={problem !== undefined} onClick={() => save.mutate()}>
            Save the chapters
          </Button>
        </div>
      </div>
      <ChapterList videoId={videoId} chapters={chapters} />
    </Section>
  )
}

/** As they are read; each goes to its place in the player above. */
function ChapterList({ videoId, chapters }: Pick<ChaptersBody, 'chapters'> & { videoId: string }) {
  if (chapters.length === 0) return <p>No chapters yet.</p>
  return (
    <ol className={styles.chapters} aria-label="Chapters of the video">
      {chapters.map(({ startS, title }) => (
        <li key={`${startS} ${title}`}>
          <button type="button" className={styles.chapter} onClick={() => seekPlayer(startS)}>
            <FramePicture videoId={videoId} timeS={startS} />
            <span className={styles.time}>{formatStart(startS)}</span>
            <span dir="auto">{title}</span>
          </button>
        </li>
      ))}
    </ol>
  )
}

function countChapters(count: number): string {
  return count === 1 ? '1 more chapter is' : `${count} more chapters are`
}
