import { startFirefox } from './firefox.ts'
import { testOwnersWay } from './owners-way.ts'

testOwnersWay('Firefox', startFirefox)
