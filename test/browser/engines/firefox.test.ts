import { startFirefox } from './firefox.ts'
import { testViewersWay } from './viewers-way.ts'

testViewersWay('Firefox', startFirefox)
