import { Button, Title } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { type AccountPermission, useSignedIn } from '../sign-in/queries.ts'
import styles from '../ui/failure.module.css'

/** What a page is for: opened by its address by a person who may not do that, it says so instead of showing forms that refuse. */
const NEEDED: Readonly<Record<string, AccountPermission | 'administrator'>> = {
  '/welcome': 'uploader',
  '/videos/import': 'uploader',
  '/develop/keys': 'editor',
  '/develop/limits': 'editor',
  '/system/people': 'editor',
  '/system/audit-log': 'editor',
  '/system/server': 'administrator',
  '/system/accounts': 'administrator',
}

/** @param path of the page, below the console's own */
export function IfAllowed({ path, children }: { path: string; children: ReactNode }) {
  const { user, permissions } = useSignedIn()
  const needed = NEEDED[path.replace(/(?<=.)\/$/, '')]
  if (needed === undefined || (needed === 'administrator' ? user.administrator : permissions.includes(needed))) return children
  return (
    <div className={styles.page}>
      <Title order={1}>This page is not for your role</Title>
      <p>
        {needed === 'administrator'
          ? 'It is for administrators of this installation.'
          : `You are ${user.role === 'uploader' ? 'an uploader' : 'a viewer'} in this account. Ask an owner of the account.`}
      </p>
      <Button component={Link} to="/videos" variant="default">
        All videos
      </Button>
    </div>
  )
}
