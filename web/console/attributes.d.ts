import 'react'

declare module 'react' {
  interface InputHTMLAttributes<T> {
    /** Chooses a folder instead of files. */
    webkitdirectory?: string
  }
}
