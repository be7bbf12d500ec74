import { Button, Progress, Textarea } from '@mantine/core'
import { Link, useBlocker } from '@tanstack/react-router'
import { useMemo, useRef, useState } from 'react'
import { Dialog } from '../ui/dialog.tsx'
import { UploadIcon } from '../ui/icons.tsx'
import { Page } from '../ui/page.tsx'
import { countVideos, formatCount } from '../units.ts'
import { type ImportRow, MAX_ROWS, parseImportList } from './import-list.ts'
import styles from './import-page.module.css'
import { ImportTable } from './import-table.tsx'
import { type ImportRun, useImport } from './use-import.ts'

const EXAMPLE = `url,title,tags,folder,date
https://example.org/lesson-12.mp4,Lesson 12 – Light,course;light,Courses/Drawing,2026-11-21
https://example.org/lesson-13.mp4,Lesson 13 – Shadow,course;shadow,Courses/Drawing,2026-11-28`

/** Videos that the server fetches itself, from a list of addresses or a CSV with their titles, tags, folders and dates. */
export function ImportPage() {
  const [text, setText] = useState('')
  const run = useImport()
  const rows = useMemo(() => parseImportList(text), [text]) // the same objects, of which the results are
  const ready = rows.filter((row) => row.problem === undefined && !isAdded(run, row)).slice(0, MAX_ROWS)
  return (
    <Page title="Import from addresses" above={<Link to="/videos">← Videos</Link>}>
      <div className={styles.column}>
        <p className={styles.lead}>
          One address a line, or a CSV whose first line names its columns: <b>url</b>, optionally <b>title</b>, <b>tags</b>{' '}
          (separated by ;), <b>folder</b> (Courses/Drawing) and <b>date</b>. The server fetches the videos one after another, also
          after this page is closed.
        </p>
        <Textarea
          label="Addresses or CSV"
          placeholder={EXAMPLE}
          autosize
          minRows={6}
          maxRows={14}
          value={text}
          onChange={({ target }) => setText(target.value)}
          classNames={{ input: styles.text }}
          disabled={run.isRunning}
          spellCheck={false}
        />
        <div className={styles.actions}>
          <Button disabled={ready.length === 0} loading={run.isRunning} onClick={() => void run.start(ready)}>
            {ready.length === 0 ? 'Import' : `Import ${countVideos(ready.length)}`}
          </Button>
          <OpenFile onText={setText} isDisabled={run.isRunning} />
          {rows.length > MAX_ROWS && (
            <span>
              Of {formatCount(rows.length)} rows, the first {formatCount(MAX_ROWS)} at a time.
            </span>
          )}
        </div>
        <Progressing run={run} total={run.results.size + ready.length} />
        {rows.length > 0 && <ImportTable rows={rows} results={run.results} />}
        <StayDialog run={run} />
      </div>
    </Page>
  )
}

function isAdded({ results }: ImportRun, row: ImportRow): boolean {
  const result = results.get(row)
  return result !== undefined && 'videoId' in result
}

function OpenFile({ onText, isDisabled }: { onText(text: string): void; isDisabled: boolean }) {
  const input = useRef<HTMLInputElement>(null)
  return (
    <>
      <Button
        variant="default"
        leftSection={<UploadIcon size={16} />}
        disabled={isDisabled}
        onClick={() => input.current?.click()}
      >
        Open a CSV file
      </Button>
      <input
        ref={input}
        type="file"
        hidden
        accept=".csv,.txt,.tsv,text/csv,text/plain"
        onChange={({ target }) => void target.files?.[0]?.text().then(onText)}
      />
    </>
  )
}

function Progressing({ run: { isRunning, results }, total }: { run: ImportRun; total: number }) {
  const added = [...results.values()].filter((result) => 'videoId' in result).length
  const failed = results.size - added
  if (!isRunning && results.size === 0) return null
  return (
    <div className={styles.progress}>
      {isRunning && <Progress value={(100 * results.size) / Math.max(1, total)} aria-label="Import" />}
      <output>
        {isRunning ? `${formatCount(results.size)} of ${formatCount(total)} added` : `${countVideos(added)} added`}
        {failed > 0 && `, ${formatCount(failed)} failed`}.{' '}
        {!isRunning && added > 0 && <Link to="/videos">See them in the library</Link>}
      </output>
    </div>
  )
}

/** Before the page is left while rows are missing: those would not be added. */
function StayDialog({ run: { isRunning, stop } }: { run: ImportRun }) {
  const leaving = useBlocker({ shouldBlockFn: () => isRunning, enableBeforeUnload: isRunning, withResolver: true })
  if (leaving.status !== 'blocked') return null
  return (
    <Dialog
      title="Stop importing?"
      onClose={() => leaving.reset()}
      action="Stop and leave"
      color="stop"
      onSubmit={() => {
        stop()
        leaving.proceed()
      }}
    >
      <p>The videos that were added stay, and the server fetches them. The other rows are not imported.</p>
    </Dialog>
  )
}
