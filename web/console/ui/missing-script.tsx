import { Button, Title } from '@mantine/core'
import { useEffect, useState } from 'react'
import { connection } from '../connection.ts'
import styles from './failure.module.css'

// The scripts of a page are loaded when it is opened. After an upgrade of the server those of an older page are gone.

const NAME = 'MissingScript'
const RELOADED_KEY = 'reelgate-reloaded-at'
/** What is missing again so soon is not missing because of an upgrade. */
const RELOAD_PAUSE_MS = 60_000

/**
 * Gives the errors of scripts that cannot be loaded a name: each browser has words of its own for them, by which the router would load
 * the page again, also from a server that is away.
 */
export function nameMissingScripts(): void {
  window.addEventListener('vite:preloadError', ({ payload }) => {
    payload.name = NAME
    payload.message = 'A script of the console could not be loaded.'
  })
}

export function isMissingScript(error: unknown): boolean {
  return error instanceof Error && error.name === NAME
}

/** Instead of a page whose script is gone: loads the page again, once, as soon as the server answers. */
export function ReloadForScript() {
  const [wasReloaded] = useState(() => Date.now() - Number(sessionStorage.getItem(RELOADED_KEY)) < RELOAD_PAUSE_MS)
  useEffect(() => {
    if (wasReloaded) return
    let isWanted = true
    void connection.whenHere().then(() => {
      if (isWanted) reload()
    })
    return () => {
      isWanted = false
    }
  }, [wasReloaded])
  return (
    <div className={styles.page} role="status">
      <Title order={1}>{wasReloaded ? 'A part of this page is missing' : 'Loading a newer version of this page'}</Title>
      {wasReloaded ? (
        <p>
          Its script could not be loaded. Reelgate, or a proxy in front of it, may just be being upgraded: load the page again in
          a moment.
        </p>
      ) : (
        <p>Reelgate has been upgraded since this page was opened.</p>
      )}
      <Button variant="default" onClick={reload}>
        Load the page again
      </Button>
    </div>
  )
}

function reload() {
  sessionStorage.setItem(RELOADED_KEY, String(Date.now()))
  location.reload()
}
