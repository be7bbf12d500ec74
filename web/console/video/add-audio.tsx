import { Progress, Switch } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useAnnounce } from '../ui/announcements.tsx'
import { FailureNotice } from '../ui/failure.tsx'
import forms from '../ui/form.module.css'
import { languageName } from '../ui/language-name.ts'
import { Section } from '../ui/section.tsx'
import { ChooseFile, LanguageField, TrackNameField } from './language-fields.tsx'
import { audioQuery } from './queries.ts'
import { sendAudio } from './send-audio.ts'

/** Adds an audio track from a file of its own, such as another language. */
export function AddAudio({ videoId }: { videoId: string }) {
  const announce = useAnnounce()
  const queries = useQueryClient()
  const [language, setLanguage] = useState('')
  const [name, setName] = useState('')
  const [isDefault, setIsDefault] = useState(false)
  const [part, setPart] = useState(0)
  const add = useMutation({
    mutationFn: (file: File) => {
      setPart(0)
      return sendAudio({ videoId, file, language: language.trim(), name: name.trim(), isDefault }, setPart)
    },
    onSuccess(tracks) {
      announce(`The audio track in ${languageName(language.trim())} has been sent, and is being encoded.`)
      setLanguage('') // the next track is of another
      setName('')
      setIsDefault(false)
      queries.setQueryData(audioQuery(videoId).queryKey, tracks)
    },
  })
  return (
    <Section
      title="Add an audio track"
      lead="Another language, for example: a file with the sound, or a video with it. It begins with the video, and what is longer is cut off."
    >
      <div className={forms.form}>
        <LanguageField value={language} onChange={setLanguage} />
        <TrackNameField value={name} hint="Empty: that of the language." onChange={setName} />
        <Switch
          label="Plays unless a viewer chooses another"
          checked={isDefault}
          onChange={({ target }) => setIsDefault(target.checked)}
        />
        {add.error && <FailureNotice error={add.error} />}
        {add.isPending && <Progress value={100 * part} aria-label="Sending the audio track" />}
        <div className={forms.buttons}>
          <ChooseFile
            accept="audio/*,video/*,.mkv,.mka,.flac,.opus"
            language={language}
            isSending={add.isPending}
            onChoose={(file) => add.mutate(file)}
          />
        </div>
      </div>
    </Section>
  )
}
