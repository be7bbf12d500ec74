import { describe, expect, test } from 'vitest'
import { readProtection, toOptions } from '../../web/console/protection/protection.ts'

// The form for the defaults of OTPs edits only what it saves again as it was.

const MOVING = { type: 'rtext', text: '{Email}', color: '0xABCDEF', alpha: '0.6', size: '22', interval: '5000' }
const FIXED = { type: 'text', text: '{id}', color: '0xffffff', alpha: 0.5, size: 15, x: '3%', y: '4%' }

describe.each([
  { what: 'a moving text', annotate: MOVING },
  { what: 'a moving text with the interval that the server uses without one', annotate: { ...MOVING, interval: undefined } },
  { what: 'a fixed text, with numbers', annotate: FIXED },
])('with $what', ({ annotate }) => {
  test('the form reads the options, and saves those that it does not edit with its own', () => {
    const options = {
      ...JSON.parse(JSON.stringify({ annotate: [annotate] })),
      whitelisthref: 'school.example',
      forcedBitrate: 800,
    }
    const protection = readProtection(options)
    if (!protection) throw new Error('The form does not edit these options')
    expect(JSON.stringify(toOptions(protection, options)).toLowerCase()).toContain(`"color":"${annotate.color.toLowerCase()}"`)
    expect(toOptions({ ...protection, watermark: null }, options)).toEqual({
      whitelisthref: 'school.example',
      forcedBitrate: 800,
    })
  })
})

test.each([
  { what: 'at another place', annotate: { ...FIXED, x: '50%' } },
  { what: 'with another interval', annotate: { ...MOVING, interval: '20000' } },
  { what: 'that is hidden between two places', annotate: { ...MOVING, skip: '3000' } },
  { what: 'with the size and color of the server', annotate: { type: 'rtext', text: '{id}' } },
  { what: 'that is an image', annotate: { type: 'image', url: 'https://school.example/logo.png' } },
])('a watermark $what is not edited', ({ annotate }) => {
  expect(readProtection({ annotate: [annotate] })).toBeUndefined()
})
