import { Button, Switch, TagsInput, Textarea, TextInput } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import type { VideoBody } from '../../../src/http/api/video-body.ts'
import { callApi } from '../api.ts'
import { FolderSelect } from '../catalogue/folder-select.tsx'
import { refreshLibrary, tagsQuery } from '../catalogue/queries.ts'
import { useMay } from '../sign-in/queries.ts'
import { useAnnounce } from '../ui/announcements.tsx'
import { FactList } from '../ui/fact-list.tsx'
import { FailureNotice } from '../ui/failure.tsx'
import forms from '../ui/form.module.css'
import { Section } from '../ui/section.tsx'
import { formatBytes, formatDuration, formatMoment } from '../units.ts'
import { DeleteSection } from './delete-section.tsx'
import { EmbedBuilder } from './embed-builder.tsx'
import { PosterSection } from './poster-section.tsx'
import { useMayEdit } from './use-may-edit.ts'

export function DetailsTab({ video }: { video: VideoBody }) {
  const mayEdit = useMayEdit(video.id)
  const mayDelete = useMay('editor')
  return (
    <>
      <Section title="Put it on your site">
        <EmbedBuilder videoId={video.id} />
      </Section>
      {mayEdit && (
        <Section title="Details">
          <DetailsForm video={video} />
        </Section>
      )}
      {mayEdit && video.status === 'ready' && <PosterSection video={video} />}
      <Section title="Facts">
        <FactList
          facts={[
            ['Id', <code key="id">{video.id}</code>],
            ['Added', formatMoment(video.upload_time)],
            ['Length', video.length > 0 ? formatDuration(video.length) : 'Not known yet'],
            ['Stored', formatBytes(video.totalSizeBytes)],
          ]}
        />
      </Section>
      {mayDelete && <DeleteSection video={video} />}
    </>
  )
}

type Details = Pick<VideoBody, 'title' | 'description' | 'folderId' | 'tags'> & { isPublic: boolean }

function DetailsForm({ video }: { video: VideoBody }) {
  const queries = useQueryClient()
  const announce = useAnnounce()
  const { data: knownTags = [] } = useQuery(tagsQuery)
  const [typedTag, setTypedTag] = useState('')
  const [changes, setChanges] = useState<Partial<Details>>({})
  const { title, description, folderId, tags } = video
  const now: Details = { title, description, folderId, tags, isPublic: video.public === 1, ...changes }
  const save = useMutation({
    async mutationFn() {
      const { tags: newTags, isPublic, ...texts } = changes
      const body = { ...texts, ...(isPublic !== undefined && { public: isPublic ? 1 : 0 }) }
      if (Object.keys(body).length > 0) await callApi<unknown>('POST', `videos/${video.id}`, { body })
      if (newTags) await callApi<unknown>('PUT', 'videos/tags', { body: { videos: [video.id], tags: newTags } })
    },
    async onSuccess() {
      announce('The details have been saved.')
      await refreshLibrary(queries)
      setChanges({})
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    save.mutate()
  }
  const change = (change: Partial<Details>) => setChanges({ ...changes, ...change })
  return (
    <form className={forms.form} onSubmit={submit}>
      <TextInput
        label="Title"
        required
        maxLength={500}
        value={now.title}
        onChange={({ target }) => change({ title: target.value })}
      />
      <Textarea
        label="Description"
        autosize
        minRows={2}
        maxRows={10}
        maxLength={5_000}
        value={now.description}
        onChange={({ target }) => change({ description: target.value })}
      />
      <TagsInput
        label="Tags"
        description="Enter ends a tag."
        data={typedTag === '' ? [] : knownTags}
        value={now.tags}
        onChange={(tags) => change({ tags })}
        searchValue={typedTag}
        onSearchChange={setTypedTag}
        limit={50}
        acceptValueOnBlur
      />
      <FolderSelect label="Folder" value={now.folderId} onChange={(folderId) => change({ folderId })} />
      <Switch
        label="Title, length and posters are public"
        description="Pages may list the video without an OTP. Playing it always needs one."
        checked={now.isPublic}
        onChange={({ target }) => change({ isPublic: target.checked })}
      />
      {save.error && <FailureNotice error={save.error} />}
      <div className={forms.buttons}>
        <Button type="submit" loading={save.isPending} disabled={Object.keys(changes).length === 0}>
          Save
        </Button>
      </div>
    </form>
  )
}
