// Tells TypeScript that React may render <reelgate-player>. The import is your copy of https://video.example.org/v2/reelgate.d.ts.
import type { DetailedHTMLProps, HTMLAttributes } from 'react'
import type { ReelgatePlayerAttributes, ReelgatePlayerElement, ReelgatePlayerEventMap } from '../../web/embed/reelgate.d.ts'

type Listeners = { [Name in keyof ReelgatePlayerEventMap as `on${Name}`]?: (event: ReelgatePlayerEventMap[Name]) => void }

declare module 'react' {
  namespace JSX {
    interface IntrinsicElements {
      'reelgate-player': DetailedHTMLProps<HTMLAttributes<ReelgatePlayerElement>, ReelgatePlayerElement> &
        ReelgatePlayerAttributes &
        Listeners
    }
  }
}
