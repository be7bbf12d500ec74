/** The logo: a reel whose hub is a keyhole. The same path as logo.svg. */
export function Logo({ size = 24 }: { size?: number }) {
  return (
    <svg aria-hidden="true" width={size} height={size} viewBox="0 0 32 32" style={{ flex: 'none' }}>
      <path fill="var(--lamp)" fillRule="evenodd" d={MARK} />
    </svg>
  )
}

const MARK =
  'M16 1a15 15 0 1 0 0 30a15 15 0 0 0 0-30zM16 3.7a2.9 2.9 0 1 1 0 5.8a2.9 2.9 0 1 1 0-5.8zM24.94 10.2a2.9 2.9 0 1 1 0 5.8a2.9 2.9 0 1 1 0-5.8zM21.53 20.7a2.9 2.9 0 1 1 0 5.8a2.9 2.9 0 1 1 0-5.8zM10.47 20.7a2.9 2.9 0 1 1 0 5.8a2.9 2.9 0 1 1 0-5.8zM7.06 10.2a2.9 2.9 0 1 1 0 5.8a2.9 2.9 0 1 1 0-5.8zM16 12.2a2.5 2.5 0 0 1 1.35 4.6l.75 3.2h-4.2l.75-3.2a2.5 2.5 0 0 1 1.35-4.6z'
