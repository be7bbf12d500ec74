import { testOwnersWay } from './owners-way.ts'
import { startWebKit } from './webkit.ts'

testOwnersWay('WebKit', startWebKit)
