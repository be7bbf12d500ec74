import { ActionIcon, Progress, UnstyledButton } from '@mantine/core'
import { Link, useRouterState } from '@tanstack/react-router'
import { useState } from 'react'
import { CheckIcon, ChevronDownIcon, CloseIcon, ReloadIcon, WarningIcon } from '../app/icons.tsx'
import { countVideos, formatBytes, formatRemaining, listNames } from '../units.ts'
import { useUploadList, useUploads } from './upload-provider.tsx'
import styles from './upload-tray.module.css'
import type { Upload } from './uploads.ts'

/** The uploads of this tab, in a corner of every page. */
export function UploadTray() {
  const uploads = useUploads()
  const list = useUploadList()
  const [isOpen, setOpen] = useState(true)
  const leftOut = uploads.leftOut()
  const isShownByPage = useRouterState({ select: ({ location }) => location.pathname === '/welcome' }) && list.length === 1
  if (isShownByPage) return null
  if (list.length === 0 && leftOut.length === 0) return null
  const open = list.filter(({ state }) => state === 'waiting' || state === 'sending')
  return (
    <section aria-label="Uploads" className={styles.tray}>
      <header className={styles.head}>
        <UnstyledButton className={styles.fold} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          <span data-open={isOpen || undefined}>
            <ChevronDownIcon size={16} />
          </span>
          <output>{headline(list, open.length)}</output>
        </UnstyledButton>
        {open.length === 0 && (
          <ActionIcon variant="subtle" color="gray" aria-label="Close the list of uploads" onClick={uploads.clear}>
            <CloseIcon size={16} />
          </ActionIcon>
        )}
      </header>
      {open.length > 0 && <Total list={list} bytesPerS={uploads.bytesPerS()} />}
      {leftOut.length > 0 && (
        <p className={styles.leftOut}>
          Left out, because {leftOut.length === 1 ? 'it is no video' : 'they are no videos'}: {listNames(leftOut)}
        </p>
      )}
      {isOpen && list.length > 0 && (
        <ul className={styles.list}>
          {list.map((upload) => (
            <UploadItem key={upload.id} upload={upload} />
          ))}
        </ul>
      )}
    </section>
  )
}

function headline(list: readonly Upload[], open: number): string {
  const failed = list.filter(({ state }) => state === 'failed').length
  if (open > 0) return `Uploading ${list.length - open - failed + 1} of ${list.length}`
  if (list.length === 0) return 'Nothing to upload'
  if (failed === 0) return `${countVideos(list.length)} uploaded`
  return failed === list.length ? 'Nothing was uploaded' : `${list.length - failed} uploaded, ${failed} failed`
}

function Total({ list, bytesPerS }: { list: readonly Upload[]; bytesPerS: number }) {
  const counted = list.filter(({ state }) => state !== 'failed')
  const [sent, all] = [sum(counted, 'sentBytes'), sum(counted, 'sizeBytes')]
  return (
    <div className={styles.total}>
      <Progress value={(100 * sent) / Math.max(1, all)} size={6} aria-label="All uploads" />
      <span>
        {formatBytes(sent)} of {formatBytes(all)}
        {bytesPerS > 0 && ` · ${formatBytes(bytesPerS)}/s · ${formatRemaining((all - sent) / bytesPerS)}`}
      </span>
      <span>Keep this tab open until everything is uploaded.</span>
    </div>
  )
}

function sum(list: readonly Upload[], field: 'sentBytes' | 'sizeBytes'): number {
  return list.reduce((total, upload) => total + upload[field], 0)
}

function UploadItem({ upload }: { upload: Upload }) {
  const uploads = useUploads()
  const { id, title, state, problem } = upload
  return (
    <li className={styles.item} data-state={state}>
      <div className={styles.text}>
        {state === 'sent' && upload.videoId ? (
          <Link to="/videos/$videoId" params={{ videoId: upload.videoId }} className={styles.title}>
            {title}
          </Link>
        ) : (
          <span className={styles.title}>{title}</span>
        )}
        <UploadDetail upload={upload} />
        {problem !== undefined && state === 'failed' && <span className={styles.problem}>{problem}</span>}
      </div>
      {state === 'failed' && (
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

function UploadDetail({ upload: { title, state, sentBytes, sizeBytes, isStalled } }: { upload: Upload }) {
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
