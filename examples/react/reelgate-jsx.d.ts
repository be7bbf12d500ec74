// Tells TypeScript that React may render <reelgate-player> and <reelgate-uploader>. The import is your copy of https://video.example.org/v2/reelgate.d.ts.
import type { DetailedHTMLProps, HTMLAttributes } from 'react'
import type {
  ReelgatePlayerAttributes,
  ReelgatePlayerElement,
  ReelgatePlayerEventMap,
  ReelgateUploaderAttributes,
  ReelgateUploaderElement,
  UploaderEventMap,
} from '../../web/embed/reelgate.d.ts'

type Listeners<Events> = { [Name in keyof Events & string as `on${Name}`]?: (event: Events[Name]) => void }

declare module 'react' {
  namespace JSX {
    interface IntrinsicElements {
      'reelgate-player': DetailedHTMLProps<HTMLAttributes<ReelgatePlayerElement>, ReelgatePlayerElement> &
        ReelgatePlayerAttributes &
        Listeners<ReelgatePlayerEventMap>
      'reelgate-uploader': DetailedHTMLProps<HTMLAttributes<ReelgateUploaderElement>, ReelgateUploaderElement> &
        ReelgateUploaderAttributes &
        Listeners<UploaderEventMap>
    }
  }
}
