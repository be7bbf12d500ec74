import { Modal, Select } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { callApi } from '../api.ts'
import { folderOptions, ROOT_FOLDER_ID } from '../catalogue/folder-path.ts'
import { folderSearchQuery } from '../catalogue/queries.ts'
import { FailureNotice } from '../ui/failure.tsx'
import { useChange } from '../ui/use-change.ts'
import { type Course, coursesQuery, type Platform } from './queries.ts'

/** In a choice of folders, as the API has null. */
const AS_PLATFORM = 'platform'

/** Which folder each course of a platform may use. */
export function CoursesDialog({ platform, onClose }: { platform: Platform; onClose(): void }) {
  const { data: courses = [], error, isPending } = useQuery(coursesQuery(platform.id))
  return (
    <Modal title={`Courses of ${platform.name}`} opened onClose={onClose} closeButtonProps={{ 'aria-label': 'Close' }}>
      {error && <FailureNotice error={error} />}
      {courses.map((course) => (
        <CourseFolder key={course.courseId} platform={platform} course={course} />
      ))}
      {!isPending && courses.length === 0 && <p>None has launched a video or chosen one yet.</p>}
    </Modal>
  )
}

function CourseFolder({ platform, course }: { platform: Platform; course: Course }) {
  const { data } = useQuery(folderSearchQuery(''))
  const query = coursesQuery(platform.id)
  const open = useChange({
    call: (folderId: string) => {
      const body = { courseId: course.courseId, folderId: folderId === AS_PLATFORM ? null : folderId }
      return callApi<unknown>('PUT', `lti/platforms/${platform.id}/courses`, { body })
    },
    announced: `${course.title} has been changed.`,
    refreshes: [query.queryKey],
  })
  return (
    <>
      <Select
        label={course.title}
        mb={12}
        data={[
          { value: AS_PLATFORM, label: 'What is open to the platform' },
          { value: ROOT_FOLDER_ID, label: 'All videos' },
          ...folderOptions(data?.folders ?? []),
        ]}
        value={course.folderId ?? AS_PLATFORM}
        onChange={(folderId) => folderId !== null && open.mutate(folderId)}
        allowDeselect={false}
        searchable
        limit={100}
        disabled={open.isPending}
      />
      {open.error && <FailureNotice error={open.error} />}
    </>
  )
}
