import { afterAll, beforeAll, expect, test } from 'vitest'
import { signIn } from '../console/person.ts'
import { type Reelgate, startSharedReelgate } from '../in-process.ts'
import { changeRows } from '../rows.ts'

// The audit log and the history of a video as people read them.

let reelgate: Reelgate & { remove(): Promise<void> }
beforeAll(async () => {
  reelgate = await startSharedReelgate()
})
afterAll(() => reelgate?.remove())

type Event = {
  kind: string
  what: string
  subjectName: string | null
  changes: string
  actor: { name: string | null }
}
async function read(path: string, owner = reelgate.owner): Promise<Event[]> {
  const response = await owner.call('GET', path)
  expect([path, response.status]).toEqual([path, 200])
  return ((await response.json()) as { rows: Event[] }).rows
}

test('U40: the audit log names people, titles and changes in words, and is searched by them', async () => {
  const { owner } = reelgate
  const { videoId } = await owner.credentials('Lesson 12 – Light')
  const { videoId: other } = await owner.credentials('Lesson 13 – Shadow')
  const folder = (await (await owner.call('POST', '/api/videos/folders', { body: { name: 'Courses' } })).json()) as { id: string }
  for (const id of [videoId, other]) await owner.call('POST', `/api/videos/${id}`, { body: { description: 'by its owner' } })
  await owner.call('POST', '/api/videos/tags', { body: { videos: [videoId], tags: ['first', 'second'] } })
  const person = await signIn(reelgate)
  await person.get('POST', '/users', { name: 'Lena Okafor', role: 'viewer' })
  const events = await read('/api/audit-log')
  const find = (kind: string) => events.find((event) => event.kind === kind)
  expect(find('tags:added')).toMatchObject({
    ...{ what: 'Tags added', subjectName: 'Lesson 12 – Light', changes: 'first, second' },
    actor: { name: expect.any(String) },
  })
  expect(find('video:edited')).toMatchObject({
    what: 'Details changed',
    subjectName: 'Lesson 13 – Shadow',
    changes: 'description',
  })
  expect(find('folder:created')).toMatchObject({ subjectName: 'Courses', changes: expect.stringContaining('name: Courses') })
  expect(find('user:created')).toMatchObject({
    ...{ what: 'Person invited', subjectName: 'Lena Okafor', actor: { name: expect.any(String) } },
    changes: expect.stringContaining('role: viewer, administrator: no'),
  })
  const kinds = async (q: string) => (await read(`/api/audit-log?q=${encodeURIComponent(q)}`)).map(({ kind }) => kind)
  expect(await kinds('light')).toEqual(['tags:added', 'video:edited'])
  expect(await kinds('TAGS second')).toEqual(['tags:added'])
  expect(await kinds('okafor')).toContain('user:created')
  expect(await kinds('no such words')).toEqual([])
  const csv = await (await owner.call('GET', '/api/audit-log?q=light&format=csv')).text()
  expect(csv).toContain(`Tags added,${videoId},Lesson 12 – Light,`)
  expect(csv.trim().split('\r\n')).toHaveLength(3)

  const history = await read(`/api/videos/${videoId}/history`)
  expect(history.map(({ what, changes }) => [what, changes])).toEqual(
    expect.arrayContaining([
      ['Tags added', 'first, second'],
      ['Details changed', 'description'],
    ]),
  )
  const stranger = await reelgate.newOwner('Another')
  const insert = `insert into audit_event (at_s, account_id, actor, kind, subject, details) select 1, id, 'server', 'video:edited', ?, null from account where name = 'Another'`
  changeRows(reelgate, insert, videoId)
  expect((await read('/api/audit-log?q=details', stranger)).map(({ subjectName }) => subjectName)).toEqual([null])
  expect(folder.id).not.toBe('')
})

test('U40: a search reads on through pages without what it looks for', async () => {
  const owner = await reelgate.newOwner('With a long log')
  const { videoId } = await owner.credentials('The needle')
  await owner.call('POST', `/api/videos/${videoId}`, { body: { description: 'x' } })
  const insert = `with recursive n (i) as (select 1 union all select i + 1 from n where i < 2500)
    insert into audit_event (at_s, account_id, actor, kind, subject, details)
    select i, (select id from account where name = 'With a long log'), 'server', 'tags:added', 'v' || i, null from n`
  changeRows(reelgate, insert)
  expect(await read('/api/audit-log?q=needle', owner)).toMatchObject([{ kind: 'video:edited', subjectName: 'The needle' }])
})
