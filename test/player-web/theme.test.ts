import { expect, test } from 'vitest'
import { contrast, inkOn, readTheme, themeProperties, withContrast } from '../../web/player/theme.ts'
import { newChance, rounds } from '../seeded-random.ts'

const asWritten = (color: string) => color

test('the options of a theme are read in every form that pages write them', () => {
  expect(
    readTheme({ primaryColor: 'F2a', surfaceColor: 'white', borderRadius: '12', fontFamily: 'Inter, "Open Sans",serif' }),
  ).toEqual({
    primaryColor: '#ff22aa',
    surfaceColor: 'white',
    borderRadius: '12px',
    fontFamily: '"Inter", "Open Sans", serif',
  })
  expect(readTheme({ borderRadius: '0px', fontFamily: '游ゴシック' })).toEqual({
    borderRadius: '0px',
    fontFamily: '"游ゴシック"',
  })
  expect(readTheme({ borderRadius: '500px' })).toEqual({ borderRadius: '24px' }) // more would leave no room for the words
  expect(readTheme({ primaryColor: '', otp: 'x', playbackSpeedOptions: [1] })).toEqual({ primaryColor: undefined })
})

test.each([
  { primaryColor: 'red;}body{display:none' },
  { primaryColor: 'url(https://example.org/)' },
  { primaryColor: 'var(--ink)' },
  { surfaceColor: '#12345678' },
  { surfaceColor: 4 },
  { borderRadius: '-4px' },
  { borderRadius: 'calc(1px)' },
  { borderRadius: '1e9px' },
  { fontFamily: 'url(https://example.org/font.woff2)' },
  { fontFamily: 'serif; background: url(//example.org)' },
  { fontFamily: 'Inter,' },
  { fontFamily: '"a\\", url(b), "c"' },
  { fontFamily: 'a'.repeat(61) },
  { fontFamily: Array(11).fill('serif').join() },
  { fontFamily: ['serif'] },
  { fontFamily: ` ${'serif, '.repeat(1000)}` },
])('a value that is no color, length or list of fonts is left out: %o', (options) => {
  expect(readTheme(options)).toEqual({})
})

test('text on the colors of a page, and these colors on the player, can always be seen', () => {
  const chance = newChance('colors of pages')
  const color = () => `#${Math.floor(chance.between(0, 0x1000000)).toString(16).padStart(6, '0')}`
  for (let round = 0; round < rounds(300, 20_000); round++) {
    const [primaryColor, surfaceColor] = [color(), color()]
    const properties = themeProperties({ primaryColor, surfaceColor }, asWritten)
    const of = (name: string) => properties[name] ?? ''
    expect(contrast(of('--lamp'), '#1c1c1c'), `${primaryColor} on the bar`).toBeGreaterThanOrEqual(3)
    expect(contrast(of('--lamp-ink'), of('--lamp')), `on ${primaryColor}`).toBeGreaterThanOrEqual(4.5)
    expect(of('--surface')).toBe(surfaceColor)
    for (const name of ['--surface-ink', '--surface-ink-soft', '--surface-lamp'])
      expect(contrast(of(name), surfaceColor), `${name} of ${primaryColor} on ${surfaceColor}`).toBeGreaterThanOrEqual(4.5)
  }
})

test('a color that can be seen stays as the page has it; one that cannot is lightened or darkened as little as that takes', () => {
  expect(withContrast('#ff0000', '#1c1c1c', 3)).toBe('#ff0000')
  const navy = withContrast('#000080', '#1c1c1c', 3)
  expect(contrast(navy, '#1c1c1c')).toBeLessThan(3.3)
  const yellow = withContrast('#ffff00', '#ffffff', 4.5)
  expect(contrast(yellow, '#ffffff')).toBeLessThan(5)
})

test('the ink on a color is dark or white, whichever can be read', () => {
  expect(['#f2a93b', '#ffffff', '#00ff00'].map(inkOn)).toEqual(['#111214', '#111214', '#111214'])
  expect(['#000000', '#0000ff', '#7a1f1f'].map(inkOn)).toEqual(['#ffffff', '#ffffff', '#ffffff'])
  expect(inkOn('#e53935')).toBe('#000000')
})

test('what a page does not set stays the player’s own', () => {
  expect(new Set(Object.values(themeProperties({}, asWritten)))).toEqual(new Set([undefined]))
  const { '--lamp': lamp, '--surface': surface, '--surface-lamp': text } = themeProperties({ surfaceColor: '#ffffff' }, asWritten)
  expect([lamp, surface]).toEqual([undefined, '#ffffff'])
  expect(contrast(text ?? '', '#ffffff')).toBeGreaterThanOrEqual(4.5)
})
