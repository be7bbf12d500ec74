import { testViewersWay } from './viewers-way.ts'
import { startWebKit } from './webkit.ts'

testViewersWay('WebKit', startWebKit)
