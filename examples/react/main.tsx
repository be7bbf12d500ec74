import { StrictMode, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { LessonVideo } from './lesson-video.tsx'

function Course() {
  const [lesson, setLesson] = useState<string | undefined>('1')
  const [watched, setWatched] = useState(false)
  return (
    <>
      <button type="button" onClick={() => setLesson('2')}>
        Next lesson
      </button>
      <button type="button" onClick={() => setLesson(undefined)}>
        Close
      </button>
      {lesson && <LessonVideo lesson={lesson} onEnded={() => setWatched(true)} />}
      {watched && <p>Watched to the end.</p>}
    </>
  )
}

const root = document.querySelector('#app')
if (root)
  createRoot(root).render(
    <StrictMode>
      <Course />
    </StrictMode>,
  )
