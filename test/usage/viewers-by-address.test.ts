import { expect, test } from 'vitest'
import { createViewersByAddress } from '../../src/usage/viewers-by-address.ts'

test('who has not been seen at a place for a minute watches there no more', () => {
  let nowMs = 0
  const watchers = createViewersByAddress(() => nowMs)
  watchers.note('video', '10.0.0.1', 'ann')
  nowMs = 30_000
  watchers.note('video', '10.0.0.1', 'ben')
  watchers.note('another', '10.0.0.1', 'carl')
  watchers.forgetInactive()
  expect(watchers.viewerLabels('video', '10.0.0.1')).toEqual(['ann', 'ben'])
  nowMs = 60_001
  watchers.forgetInactive()
  expect(watchers.viewerLabels('video', '10.0.0.1')).toEqual(['ben'])
  nowMs = 200_000
  watchers.forgetInactive()
  expect(watchers.viewerLabels('video', '10.0.0.1')).toEqual([''])
  expect(watchers.viewerLabels('video', '10.0.0.2')).toEqual([''])
})
