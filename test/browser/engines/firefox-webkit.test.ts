import { describe } from 'vitest'
import { sampleOf } from '../../sample.ts'
import { isLong } from '../../seeded-random.ts'
import { startFirefox } from './firefox.ts'
import { testOwnersWay } from './owners-way.ts'
import { testViewersWay } from './viewers-way.ts'
import { startWebKit } from './webkit.ts'

const ENGINES = [
  { name: 'Firefox', start: startFirefox },
  { name: 'WebKit', start: startWebKit },
] as const

// Each run starts both: a viewer uses one and an owner the other. In a long run both use both.
const viewers = sampleOf('the engine of the viewer', ENGINES, 1)
const owners = ENGINES.filter((engine) => isLong || !viewers.includes(engine))

describe.each(viewers)('a viewer in $name', ({ name, start }) => testViewersWay(name, start))
describe.each(owners)('an owner in $name', ({ name, start }) => testOwnersWay(name, start))
