import { TagsInput, Textarea, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { useForm } from 'react-hook-form'
import type { VideoBody } from '../../../src/http/api/video-body.ts'
import { callApi } from '../api.ts'
import { FolderSelect } from '../catalogue/folder-select.tsx'
import { LIBRARY, tagsQuery } from '../catalogue/queries.ts'
import { useMay } from '../sign-in/queries.ts'
import { FactList } from '../ui/fact-list.tsx'
import { changesIn, Form, SwitchField, useField } from '../ui/form.tsx'
import { Section } from '../ui/section.tsx'
import { useChange } from '../ui/use-change.ts'
import { formatBytes, formatDuration, formatMoment } from '../units.ts'
import { DeleteSection } from './delete-section.tsx'
import { EmbedBuilder } from './embed-builder.tsx'
import { MetadataFields, type Pair, toMetadata, toPairs } from './metadata-fields.tsx'
import { PosterSection } from './poster-section.tsx'
import { videoQuery } from './queries.ts'
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
            ...(video.duplicateOf === undefined
              ? []
              : [['Same file as', <VideoLink key="same" id={video.duplicateOf} />] as const]),
          ]}
        />
      </Section>
      {mayDelete && <DeleteSection video={video} />}
    </>
  )
}

/** Another video, by its title. */
function VideoLink({ id }: { id: string }) {
  const { data } = useQuery(videoQuery(id))
  return (
    <Link to="/videos/$videoId" params={{ videoId: id }}>
      {data?.title ?? id}
    </Link>
  )
}

type Details = Pick<VideoBody, 'title' | 'description' | 'folderId' | 'tags'> & {
  isPublic: boolean
  externalId: string
  metadata: Pair[]
}

function DetailsForm({ video }: { video: VideoBody }) {
  const { id, title, description, folderId, tags, public: isPublic, externalId = '' } = video
  const { data: knownTags = [] } = useQuery(tagsQuery)
  const [typedTag, setTypedTag] = useState('')
  const form = useForm<Details>({
    values: { title, description, folderId, tags, isPublic: isPublic === 1, externalId, metadata: toPairs(video.metadata) },
    resetOptions: { keepDirtyValues: true },
  })
  const tagField = useField({ control: form.control, name: 'tags' })
  const folder = useField({ control: form.control, name: 'folderId' })
  const pairs = useField({ control: form.control, name: 'metadata' })
  const { isDirty, dirtyFields } = form.formState
  const save = useChange({
    async call(details: Details) {
      const { tags, isPublic, metadata, ...texts } = changesIn(details, dirtyFields)
      const body = {
        ...texts,
        ...(isPublic !== undefined && { public: isPublic ? 1 : 0 }),
        ...(metadata && { metadata: toMetadata(metadata) }),
      }
      if (Object.keys(body).length > 0) await callApi<unknown>('POST', `videos/${id}`, { body })
      if (tags) await callApi<unknown>('PUT', 'videos/tags', { body: { videos: [id], tags } })
    },
    announced: 'The details have been saved.',
    onDone: (_reply, details) => form.reset(details),
    refreshes: LIBRARY,
  })
  return (
    <Form action="Save" change={save} isDisabled={!isDirty} onSubmit={form.handleSubmit((details) => save.mutate(details))}>
      <TextInput label="Title" required maxLength={500} {...form.register('title')} />
      <Textarea label="Description" autosize minRows={2} maxRows={10} maxLength={5_000} {...form.register('description')} />
      <TagsInput
        label="Tags"
        description="Enter ends a tag."
        data={typedTag === '' ? [] : knownTags}
        searchValue={typedTag}
        onSearchChange={setTypedTag}
        limit={50}
        acceptValueOnBlur
        {...tagField}
      />
      <FolderSelect label="Folder" {...folder} />
      <SwitchField
        label="Title, length and posters are public"
        description="Pages may list the video without an OTP. Playing it always needs one."
        control={form.control}
        name="isPublic"
      />
      <TextInput
        label="External id"
        description="The video’s id in a system of yours. It is unique."
        maxLength={255}
        {...form.register('externalId')}
      />
      <MetadataFields {...pairs} />
    </Form>
  )
}
