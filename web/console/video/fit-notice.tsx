import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Notice } from '../ui/failure.tsx'
import { languageName } from '../ui/language-name.ts'
import styles from './fit-notice.module.css'
import { chaptersQuery, filesQuery } from './queries.ts'

/** Which captions and chapters do not fit what the video plays, since it was trimmed or got another file. */
export function FitNotice({ videoId }: { videoId: string }) {
  const { data: files = [] } = useQuery(filesQuery(videoId))
  const { data: chapters } = useQuery(chaptersQuery(videoId))
  const captions = files.flatMap(({ lang, hidden, doesNotFit }) =>
    doesNotFit === undefined
      ? []
      : [`${countLines(doesNotFit)} of the ${hidden ? 'hidden captions' : 'captions'} in ${languageName(lang)}`],
  )
  const unseen = chapters?.doesNotFit
  const all = [...captions, ...(unseen === undefined ? [] : [unseen === 1 ? '1 chapter' : `${unseen} chapters`])]
  if (all.length === 0) return null
  return (
    <div className={styles.around}>
      <Notice
        isWarning
        text={`Before or behind what the video plays now, and so not shown: ${new Intl.ListFormat('en').format(all)}. They are kept, and shown again after an undo.`}
      >
        <span className={styles.links}>
          {captions.length > 0 && (
            <Link to="/videos/$videoId" params={{ videoId }} search={{ tab: 'captions' }} replace resetScroll={false}>
              Captions
            </Link>
          )}
          {unseen !== undefined && (
            <Link to="/videos/$videoId" params={{ videoId }} search={{ tab: 'chapters' }} replace resetScroll={false}>
              Chapters
            </Link>
          )}
        </span>
      </Notice>
    </div>
  )
}

export function countLines(count: number): string {
  return count === 1 ? '1 line' : `${count} lines`
}
