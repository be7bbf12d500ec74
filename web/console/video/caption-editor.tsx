import { ActionIcon, Button, Textarea, TextInput } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { VideoFileBody } from '../../../src/http/api/files.ts'
import { sendForm } from '../api.ts'
import { useAnnounce } from '../ui/announcements.tsx'
import { FailureNotice } from '../ui/failure.tsx'
import { PlusIcon, TrashIcon } from '../ui/icons.tsx'
import { languageName } from '../ui/language-name.ts'
import { Section } from '../ui/section.tsx'
import styles from './caption-editor.module.css'
import { type Captions, type Cue, parseCaptions, toWebVtt } from './captions.ts'
import { readFileText } from './queries.ts'
import { useRefreshCaptions } from './use-refresh-captions.ts'

type CaptionEditorProps = { videoId: string; file: VideoFileBody; onClose(): void }

/** The lines of captions with their times, below the player. */
export function CaptionEditor({ videoId, file, onClose }: CaptionEditorProps) {
  const {
    data: stored,
    error,
    refetch,
  } = useQuery({
    queryKey: ['videos', 'caption-text', videoId, file.id],
    queryFn: async () => parseCaptions(await readFileText(videoId, file.id)),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  })
  return (
    <Section
      title={`Lines in ${languageName(file.lang)}`}
      lead="Pause the player above where a line belongs, and correct it here."
    >
      {error && <FailureNotice error={error} onRetry={() => refetch()} />}
      {stored && <CueForm videoId={videoId} language={file.lang} stored={stored} onClose={onClose} />}
    </Section>
  )
}

type CueFormProps = { videoId: string; language: string; stored: Captions; onClose(): void }

function CueForm({ videoId, language, stored, onClose }: CueFormProps) {
  const announce = useAnnounce()
  const refresh = useRefreshCaptions(videoId)
  const [cues, setCues] = useState<readonly Cue[]>(stored.cues)
  const save = useMutation({
    mutationFn() {
      const text = toWebVtt({ head: stored.head, cues: [...cues] })
      return sendForm<unknown>(`videos/${videoId}/files`, new File([text], 'captions.vtt'), { language })
    },
    async onSuccess() {
      announce(`The captions in ${languageName(language)} have been saved.`)
      onClose()
      await refresh()
    },
  })
  const change = (index: number, changes: Partial<Cue>) =>
    setCues(cues.map((cue, other) => (other === index ? { ...cue, ...changes } : cue)))
  const add = () => {
    const from = cues.at(-1)?.to ?? '00:00:00.000'
    setCues([...cues, { from, to: from, settings: '', text: '' }])
  }
  return (
    <>
      <ol className={styles.cues}>
        {cues.map((cue, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a line has no other identity
          <li key={index} className={styles.cue}>
            <TextInput
              aria-label={`Line ${index + 1} begins`}
              value={cue.from}
              onChange={({ target }) => change(index, { from: target.value })}
            />
            <TextInput
              aria-label={`Line ${index + 1} ends`}
              value={cue.to}
              onChange={({ target }) => change(index, { to: target.value })}
            />
            <Textarea
              aria-label={`Line ${index + 1}`}
              className={styles.text}
              autosize
              minRows={1}
              value={cue.text}
              onChange={({ target }) => change(index, { text: target.value })}
            />
            <ActionIcon
              variant="subtle"
              color="gray"
              size="lg"
              aria-label={`Delete line ${index + 1}`}
              onClick={() => setCues(cues.filter((_, other) => other !== index))}
            >
              <TrashIcon size={16} />
            </ActionIcon>
          </li>
        ))}
      </ol>
      {save.error && <FailureNotice error={save.error} />}
      <div className={styles.buttons}>
        <Button variant="default" leftSection={<PlusIcon size={16} />} onClick={add}>
          Add a line
        </Button>
        <Button loading={save.isPending} onClick={() => save.mutate()}>
          Save the lines
        </Button>
        <Button variant="subtle" color="gray" onClick={onClose}>
          Cancel
        </Button>
      </div>
    </>
  )
}
