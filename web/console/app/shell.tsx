import { Menu, UnstyledButton, useMantineColorScheme, VisuallyHidden } from '@mantine/core'
import { Link, Outlet, useRouterState } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import { AlertNotice } from '../alerts/alert-notice.tsx'
import { useSignedIn, useSignOut } from '../sign-in/queries.ts'
import { SignInAgain } from '../sign-in/sign-in-again.tsx'
import { Announcements } from '../ui/announcements.tsx'
import { BookIcon, CheckIcon, ChevronDownIcon, MoonIcon, PersonIcon, ScreenIcon, SignOutIcon, SunIcon } from '../ui/icons.tsx'
import { Logo } from '../ui/logo.tsx'
import { DropTarget } from '../upload/drop-target.tsx'
import { InterruptedNotice } from '../upload/interrupted-notice.tsx'
import { UploadProvider } from '../upload/upload-provider.tsx'
import { UploadTray } from '../upload/upload-tray.tsx'
import { installationUrl } from '../urls.ts'
import { IfAllowed } from './access.tsx'
import { NAVIGATION, type NavigationItem } from './navigation.ts'
import styles from './shell.module.css'
import { useEvents } from './use-events.ts'

/** What is around every page: the navigation, the account, and the page itself in `main`. */
export function Shell() {
  return (
    <Announcements>
      <UploadProvider>
        <DropTarget>
          <Frame />
          <UploadTray />
          <SignInAgain />
        </DropTarget>
      </UploadProvider>
    </Announcements>
  )
}

function Frame() {
  useEvents()
  return (
    <div className={styles.shell}>
      <a className={styles.skip} href="#main">
        Skip to the page
      </a>
      <header className={styles.side}>
        <Link to="/videos" className={styles.brand} aria-label="Reelgate, all videos">
          <Logo size={26} />
          <span>Reelgate</span>
        </Link>
        <nav aria-label="Main" className={styles.items} data-alone={NAVIGATION.length < 2 || undefined}>
          {NAVIGATION.map((item) => (
            <NavigationLink key={item.to} item={item} />
          ))}
        </nav>
        <AccountMenu />
      </header>
      <Page />
    </div>
  )
}

function NavigationLink({ item: { to, label, Icon } }: { item: NavigationItem }) {
  return (
    <Link to={to} className={styles.item} activeOptions={{ includeSearch: false }} activeProps={{ 'aria-current': 'page' }}>
      <Icon size={19} />
      <span>{label}</span>
    </Link>
  )
}

/** After each change of page the focus is at its start, as after a load: a screen reader begins there. */
function Page() {
  const page = useRef<HTMLElement>(null)
  const pathname = useRouterState({ select: (state) => state.resolvedLocation?.pathname })
  const first = useRef(pathname)
  useEffect(() => {
    if (first.current !== pathname) page.current?.focus({ preventScroll: true })
    first.current = pathname
  }, [pathname])
  return (
    <main id="main" ref={page} tabIndex={-1} className={styles.page}>
      <AlertNotice />
      <InterruptedNotice />
      <IfAllowed path={pathname ?? ''}>
        <Outlet />
      </IfAllowed>
    </main>
  )
}

const SCHEMES = [
  { value: 'light', label: 'Light', Icon: SunIcon },
  { value: 'dark', label: 'Dark', Icon: MoonIcon },
  { value: 'auto', label: 'Like the system', Icon: ScreenIcon },
] as const

function AccountMenu() {
  const { user, account } = useSignedIn()
  const { colorScheme, setColorScheme } = useMantineColorScheme()
  const signOut = useSignOut()
  return (
    <Menu width={220} position="top-start" withinPortal>
      <Menu.Target>
        <UnstyledButton className={styles.account}>
          <VisuallyHidden>Account menu of </VisuallyHidden>
          <span className={styles.face}>
            <PersonIcon size={18} />
          </span>
          <span className={styles.who}>
            <span>{user.name}</span> <span>{account.name}</span>
          </span>
          <ChevronDownIcon size={16} />
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>Appearance</Menu.Label>
        {SCHEMES.map(({ value, label, Icon }) => (
          <Menu.Item
            key={value}
            role="menuitemradio"
            aria-checked={colorScheme === value}
            leftSection={<Icon size={16} />}
            rightSection={colorScheme === value && <CheckIcon size={16} />}
            onClick={() => setColorScheme(value)}
          >
            {label}
          </Menu.Item>
        ))}
        <Menu.Divider />
        <Menu.Item component="a" href={installationUrl('docs/api').href} target="_blank" leftSection={<BookIcon size={16} />}>
          API reference
        </Menu.Item>
        <Menu.Item leftSection={<SignOutIcon size={16} />} onClick={() => signOut.mutate()}>
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}
