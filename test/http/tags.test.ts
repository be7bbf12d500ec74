import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Owner } from '../client.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { readRows } from '../rows.ts'

// Tags and edits: wire-contract.md, section 3; threats Q12 to Q14 and X09.

let reelgate: Reelgate & { remove(): Promise<void> }
let owner: Owner
let ids: string[]
beforeAll(async () => {
  reelgate = await startSharedReelgate()
})
afterAll(() => reelgate.remove())
beforeEach(async () => {
  owner = await reelgate.newOwner('tagging')
  ids = []
  for (const title of ['One', 'Two', 'Three']) ids.push((await owner.credentials(title)).videoId)
})

const METHODS = { add: 'POST', replace: 'PUT', remove: 'DELETE' } as const
const ask = (what: keyof typeof METHODS, body: unknown) => owner.call(METHODS[what], '/api/videos/tags', { body })
async function change(what: keyof typeof METHODS, videos: readonly (string | undefined)[], tags: readonly string[]) {
  const response = await ask(what, { videos, tags })
  expect({ status: response.status, body: await response.json() }).toEqual({ status: 200, body: { message: 'Done' } })
}
const tagsOf = async (id: string | undefined) => (await owner.video(id ?? '')).tags
const allTags = async () => ((await (await owner.call('GET', '/api/videos/tags')).json()) as { rows: string[] }).rows
const tagged = async (query: string) => (await owner.list(`?${query}`)).rows.map((row) => row.title)
/** The stored counters, and the same counted afresh. */
function counters() {
  const account =
    readRows<{ account_id: string }>(reelgate, 'select account_id from video where id = ?', ids[0] ?? '')[0]?.account_id ?? ''
  const stored = readRows(reelgate, 'select name, video_count from tag where account_id = ? order by name', account)
  const counted = readRows(
    reelgate,
    'select name, count(*) as video_count from video_tag where account_id = ? group by name order by name',
    account,
  )
  return { stored, counted }
}

test('tags are added, replaced, removed and cleared, in the order in which a video got them', async () => {
  const [one, two] = ids
  await change('add', [one, two], ['light', 'course'])
  await change('add', [one], ['a', 'course', 'light'])
  expect(await tagsOf(one)).toEqual(['light', 'course', 'a'])
  expect(await tagsOf(two)).toEqual(['light', 'course'])
  expect(await allTags()).toEqual(['a', 'course', 'light'])
  await change('replace', [two], ['z', 'y', 'z'])
  expect(await tagsOf(two)).toEqual(['z', 'y'])
  await change('remove', [one, two], ['course', 'y', 'never there'])
  expect(await tagsOf(one)).toEqual(['light', 'a'])
  expect(await tagsOf(two)).toEqual(['z'])
  await change('replace', [one, two], [])
  expect(await allTags()).toEqual([])
  await change('add', [one], [])
  await change('remove', [], ['a'])
  expect(counters()).toEqual({ stored: [], counted: [] })
})

test('filters by tags go together and with a search, however they are written, and the list counts what it finds', async () => {
  const [one, two, three] = ids
  await change('add', [one, two, three], ['all'])
  await change('add', [one, three], ['odd'])
  await change('add', [three], ['prime', 'a,b'])
  expect(await tagged('tags=odd, prime ,')).toEqual(['Three'])
  expect(await tagged('tag=odd&tags=prime')).toEqual(['Three'])
  expect(await tagged('tags=odd,odd,odd')).toEqual(['Three', 'One'])
  expect(await tagged(`tag=${encodeURIComponent('a,b')}`)).toEqual(['Three'])
  expect(await tagged('tags=odd&q=on')).toEqual(['One'])
  expect(await tagged('tag=odd&q=three')).toEqual(['Three'])
  for (const [query, count] of [
    ['tag=all', 3],
    ['tags=all,odd', 2],
    ['tag=odd&q=one', 1],
    ['tag=&tags=', 3],
  ] as const)
    expect((await owner.list(`?limit=1&${query}`)).count).toBe(count)
})

test('X09: a tag is kept in NFC without space around it, and is otherwise what it was', async () => {
  const [one] = ids
  const odd = ['"><svg onload=1>', '🎬 video', 'Case', 'case', 'with, comma', 'x'.repeat(255)]
  await change('add', [one], [...odd, ' e\u0301 ', '\u00e9'])
  expect(await tagsOf(one)).toEqual([...odd, 'é'])
  for (const tag of odd) expect(await tagged(`tag=${encodeURIComponent(tag)}`)).toEqual(['One'])
  expect(await tagged(`tag=${encodeURIComponent('e\u0301')}`)).toEqual(['One'])
  for (const tag of ['', '  ', 'x'.repeat(256), 'a\nb', 'a\0', '\ud800']) {
    const response = await ask('add', { videos: [one], tags: [tag] })
    expect({ tag, status: response.status }).toEqual({ tag, status: 400 })
  }
})

describe('what is not a list of ids and tags is refused, and nothing happens', () => {
  test.each([
    ['no body', undefined],
    ['no tags', { videos: [] }],
    ['a number as a tag', { videos: [], tags: [1] }],
    ['null as a tag', { videos: [], tags: [null] }],
    ['an object as an id', { videos: [{ $ne: 1 }], tags: ['x'] }],
  ])('%s', async (_, body) => {
    expect((await ask('add', body)).status).toBe(400)
  })

  test('one unknown id refuses the whole call', async () => {
    for (const what of ['add', 'replace', 'remove'] as const) {
      const response = await ask(what, { videos: [ids[0], 'f'.repeat(32)], tags: ['x'] })
      expect({ status: response.status, body: await response.json() }).toMatchObject({
        status: 404,
        body: { message: 'Video not found' },
      })
    }
    expect(await tagsOf(ids[0])).toEqual([])
  })

  test('Q12: a list by more than 50 tags', async () => {
    const tags = Array.from({ length: 1000 }, (_, i) => `t${i}`)
    expect((await owner.call('GET', `/api/videos?tags=${tags}`)).status).toBe(400)
    expect((await owner.call('GET', `/api/videos?tags=${tags.slice(0, 50)}`)).status).toBe(200)
  })

  test('Q14: a hundred thousand ids, or more pairs than one call changes', async () => {
    const many = Array.from({ length: 100_000 }, () => ids[0])
    expect((await ask('add', { videos: many, tags: ['x'] })).status).toBe(413)
    const some = Array.from({ length: 5_000 }, (_, i) => i.toString(16).padStart(32, '0'))
    expect((await ask('add', { videos: some, tags: ['x', 'y', 'z'] })).status).toBe(400)
  })
})

test('Q13: fifty clients that add and remove the same pair leave it once or not at all, and the counters agree', async () => {
  await Promise.all(Array.from({ length: 50 }, () => change('add', ids, ['same'])))
  expect((await owner.list('?tag=same')).count).toBe(3)
  expect(await tagsOf(ids[0])).toEqual(['same'])
  await Promise.all(Array.from({ length: 50 }, (_, i) => change(i % 2 ? 'add' : 'remove', [ids[i % 3]], ['same', `t${i % 5}`])))
  const { stored, counted } = counters()
  expect(stored).toEqual(counted)
})

test('a deleted video takes its tags and its words with it', async () => {
  await change('add', ids, ['gone'])
  await owner.delete(ids.slice(0, 2))
  expect(await tagged('tag=gone')).toEqual(['Three'])
  expect((await owner.list('?q=one')).count).toBe(0)
  await owner.delete(ids.slice(2))
  expect(await allTags()).toEqual([])
})

describe('an edit', () => {
  const edit = (body: unknown) => owner.call('POST', `/api/videos/${ids[0]}`, { body })

  test('changes what it names and nothing else', async () => {
    expect((await edit({ title: 'Eins', description: 'The first.\nOf three.' })).status).toBe(200)
    expect((await edit({ public: 0 })).status).toBe(200)
    expect(await owner.video(ids[0] ?? '')).toMatchObject({
      title: 'Eins',
      description: 'The first.\nOf three.',
      public: 0,
      tags: [],
    })
    expect((await owner.list('?q=eins')).count).toBe(1)
    expect((await owner.list('?q=one')).count).toBe(0)
    expect((await edit({ public: true, description: '', folderId: 'root' })).status).toBe(200)
    expect(await owner.video(ids[0] ?? '')).toMatchObject({ title: 'Eins', description: '', public: 1 })
  })

  test.each([
    ['nothing', {}],
    ['unknown fields alone', { name: 'x' }],
    ['an empty title', { title: '' }],
    ['a title of 501 characters', { title: 'x'.repeat(501) }],
    ['a number as title', { title: 5 }],
    ['null as title', { title: null }],
    ['half a character', { title: '\ud83c' }],
    ['a NUL', { description: 'a\0b' }],
    ['public 2', { public: 2 }],
    ['public "yes"', { public: 'yes' }],
  ])('with %s is 400', async (_, body) => {
    expect((await edit(body)).status).toBe(400)
    expect((await owner.video(ids[0] ?? '')).title).toBe('One')
  })

  test('keeps a title character for character', async () => {
    for (const title of ['🎬'.repeat(500), '\u202eright to left', 'e\u0301', 'tab\tnew\nline', '<a>&"\' ]]>', 'null', '0']) {
      expect((await edit({ title })).status).toBe(200)
      expect((await owner.video(ids[0] ?? '')).title).toBe(title)
    }
  })
})

test('a video has at most 200 tags', async () => {
  const [one] = ids
  const names = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => `tag ${from + i}`)
  await change('replace', [one], names(0, 199))
  const refused = await ask('add', { videos: [one], tags: names(199, 201) })
  expect([refused.status, await refused.json()]).toEqual([
    400,
    expect.objectContaining({ message: 'A video may have at most 200 tags. Remove some first.' }),
  ])
  expect(await tagsOf(one)).toHaveLength(199)
  await change('add', [one], names(198, 200))
  expect(await tagsOf(one)).toHaveLength(200)
})
