import { startChromium } from './chromium.ts'
import { testViewersWay } from './viewers-way.ts'

testViewersWay('Chromium', startChromium)
