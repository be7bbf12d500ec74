import { ActionIcon, Progress, UnstyledButton } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { Link, useRouterState } from '@tanstack/react-router'
import { lazy, type Ref, Suspense, useEffect, useRef, useState, useSyncExternalStore } from 'react'
import { Countdown } from '../ui/countdown.tsx'
import { CheckIcon, ChevronDownIcon, CloseIcon, ReloadIcon, WarningIcon } from '../ui/icons.tsx'
import { countVideos, formatBytes, formatCount, formatRemaining } from '../units.ts'
import { useUploadList, useUploads } from './upload-provider.tsx'
import styles from './upload-tray.module.css'
import { isUnderWay, type LeftOut, type Upload } from './uploads.ts'

const PresentDialog = lazy(() => import('./present-dialog.tsx').then(({ PresentDialog }) => ({ default: PresentDialog })))

/** The uploads of this tab, in a corner of every page. */
export function UploadTray() {
  const uploads = useUploads()
  const asked = useSyncExternalStore(uploads.subscribe, uploads.asked)
  return (
    <>
      <Tray />
      <Suspense>{asked.length > 0 && <PresentDialog />}</Suspense>
    </>
  )
}

function Tray() {
  const uploads = useUploads()
  const list = useUploadList()
  const [isOpen, setOpen] = useState(true)
  const isPhone = useMediaQuery('(max-width: 767px)')
  // There a finished list covers what the person goes on with.
  const mayCover = isPhone && list.every(({ state }) => state === 'sent')
  useEffect(() => setOpen(!mayCover), [mayCover])
  const leftOut = uploads.leftOut()
  const smallerParts = uploads.smallerParts()
  const isShownByPage = useRouterState({ select: ({ location }) => location.pathname === '/welcome' }) && list.length === 1
  if (isShownByPage && leftOut.length === 0) return null
  if (list.length === 0 && leftOut.length === 0) return null
  const isBusy = list.some(isUnderWay)
  const batch = list.filter(({ batch }) => batch === list.at(-1)?.batch)
  return (
    <section aria-label="Uploads" className={styles.tray}>
      <header className={styles.head}>
        <UnstyledButton
          className={styles.fold}
          aria-label={headline(batch)}
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
        >
          <span data-open={isOpen || undefined}>
            <ChevronDownIcon size={16} />
          </span>
          <output>{headline(batch)}</output>
        </UnstyledButton>
        {!isBusy && (
          <ActionIcon variant="subtle" color="gray" aria-label="Close the list of uploads" onClick={uploads.clear}>
            <CloseIcon size={16} />
          </ActionIcon>
        )}
      </header>
      {isBusy && <Total list={batch} bytesPerS={uploads.bytesPerS()} />}
      {leftOut.length > 0 && <LeftOutFiles leftOut={leftOut} />}
      {smallerParts !== undefined && (
        <p role="status" className={styles.smallerParts}>
          {smallerParts}
        </p>
      )}
      {isOpen && list.length > 0 && <UploadItems list={list} />}
    </section>
  )
}

const MAX_LEFT_OUT_SHOWN = 5

function LeftOutFiles({ leftOut }: { leftOut: readonly LeftOut[] }) {
  const others = leftOut.length - MAX_LEFT_OUT_SHOWN
  return (
    <div role="alert" className={styles.leftOut}>
      <p>Not uploaded:</p>
      <ul>
        {leftOut.slice(0, MAX_LEFT_OUT_SHOWN).map(({ name, why }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: two files may have one name, and the list only grows
          <li key={index}>
            {name} {why}.
          </li>
        ))}
        {others > 0 && <li>And {formatCount(others)} more.</li>}
      </ul>
    </div>
  )
}

/** The list, at what runs: it follows, but not under the pointer or the focus. */
function UploadItems({ list }: { list: readonly Upload[] }) {
  const items = useRef<HTMLUListElement>(null)
  const running = useRef<HTMLLIElement>(null)
  const runningId = list.find(({ state }) => state === 'sending' || state === 'pausing')?.id
  useEffect(() => {
    if (runningId === undefined || !items.current || !running.current) return
    if (items.current.matches(':hover, :focus-within')) return
    items.current.scrollTop = running.current.offsetTop - items.current.offsetTop
  }, [runningId])
  return (
    <ul ref={items} className={styles.list}>
      {list.map((upload) => (
        <UploadItem key={upload.id} ref={upload.id === runningId ? running : undefined} upload={upload} />
      ))}
    </ul>
  )
}

function headline(batch: readonly Upload[]): string {
  const [open, failed] = [batch.filter(isUnderWay).length, batch.filter(({ state }) => state === 'failed').length]
  if (open > 0) return `Uploading ${batch.length - open - failed + 1} of ${batch.length}`
  if (batch.length === 0) return 'Nothing to upload'
  if (failed === 0) return `${countVideos(batch.length)} uploaded`
  return failed === batch.length ? 'Nothing was uploaded' : `${batch.length - failed} uploaded, ${failed} failed`
}

function Total({ list, bytesPerS }: { list: readonly Upload[]; bytesPerS: number }) {
  const counted = list.filter(({ state }) => state !== 'failed')
  const [sent, all] = [sum(counted, 'sentBytes'), sum(counted, 'sizeBytes')]
  const isMoving = bytesPerS > 0 && list.some(({ state, isStalled }) => state === 'sending' && !isStalled)
  return (
    <div className={styles.total}>
      <Progress value={(100 * sent) / Math.max(1, all)} size={6} aria-label="All uploads" />
      <span>
        {formatBytes(sent)} of {formatBytes(all)}
        {isMoving && ` · ${formatBytes(bytesPerS)}/s · ${formatRemaining((all - sent) / bytesPerS)}`}
      </span>
      <span>Keep this tab open until everything is uploaded.</span>
    </div>
  )
}

function sum(list: readonly Upload[], field: 'sentBytes' | 'sizeBytes'): number {
  return list.reduce((total, upload) => total + upload[field], 0)
}

function UploadItem({ ref, upload }: { ref: Ref<HTMLLIElement> | undefined; upload: Upload }) {
  const uploads = useUploads()
  const { id, title, state, problem } = upload
  return (
    <li ref={ref} className={styles.item} data-state={state}>
      <div className={styles.text}>
        {state === 'sent' && upload.videoId ? (
          <Link to="/videos/$videoId" params={{ videoId: upload.videoId }} className={styles.title}>
            {title}
          </Link>
        ) : (
          <span className={styles.title}>{title}</span>
        )}
        <UploadDetail upload={upload} />
        {problem !== undefined && <span className={styles.problem}>{problem}</span>}
      </div>
      {(state === 'failed' || state === 'pausing') && (
        <ActionIcon variant="subtle" color="gray" aria-label={`Upload ${title} again`} onClick={() => uploads.retry(id)}>
          <ReloadIcon size={16} />
        </ActionIcon>
      )}
      {state !== 'sent' && (
        <ActionIcon variant="subtle" color="gray" aria-label={`Cancel ${title}`} onClick={() => uploads.cancel(id)}>
          <CloseIcon size={16} />
        </ActionIcon>
      )}
    </li>
  )
}

function UploadDetail({ upload: { title, state, sentBytes, sizeBytes, isStalled, nextTryAtMs } }: { upload: Upload }) {
  if (state === 'pausing')
    return (
      <span className={styles.detail}>
        <WarningIcon size={14} />
        {nextTryAtMs === undefined ? 'Continues when the server answers' : <Countdown toMs={nextTryAtMs} />}
      </span>
    )
  if (state === 'waiting') return <span className={styles.detail}>Waiting · {formatBytes(sizeBytes)}</span>
  if (state === 'failed')
    return (
      <span className={styles.detail}>
        <WarningIcon size={14} /> Not uploaded
      </span>
    )
  if (state === 'sent')
    return (
      <span className={styles.detail}>
        <CheckIcon size={14} /> Uploaded · {formatBytes(sizeBytes)}
      </span>
    )
  const percent = Math.floor((100 * sentBytes) / Math.max(1, sizeBytes))
  return (
    <>
      <Progress value={percent} size={4} aria-label={title} />
      <span className={styles.detail}>
        {isStalled ? 'Waiting for the connection' : `${percent} % of ${formatBytes(sizeBytes)}`}
      </span>
    </>
  )
}
