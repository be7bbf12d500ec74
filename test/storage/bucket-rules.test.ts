import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { examineBucketRules } from '../../src/installation/bucket-health.ts'
import { type Bucket, openBucket } from '../../src/storage/s3/bucket.ts'
import { beginUpload, sendPart } from '../../src/storage/s3/objects.ts'
import { startFaultProxy } from '../s3/fault-proxy.ts'
import { bucketEnvironment, storeEndpoint } from '../s3.ts'

test('F-231: doctor says when a bucket keeps versions or unfinished uploads, what is there already, and the rule to set, with which it is content', async () => {
  const { bucket, doctor } = await newBucketWithRules()
  expect(await doctor()).toMatchObject({
    state: 'warning',
    says: expect.stringMatching(/no rule that ends unfinished uploads.* So far: 0 uploads older than a day, .*The rule to set: /),
  })
  await setRules(bucket, 'versioning', '<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>')
  const key = `${bucket.address.prefix}sources/video`
  for (const bytes of [1_000_000, 10]) await bucket.send({ method: 'PUT', key, body: Buffer.alloc(bytes) })
  const { says } = await doctor()
  expect(says).toContain('So far: 1 old versions, 1.0 MB.')
  const [rule] = JSON.parse(says.slice(says.indexOf('{'))).Rules
  const { Filter, AbortIncompleteMultipartUpload: uploads, NoncurrentVersionExpiration: versions } = rule
  await setRules(
    bucket,
    'lifecycle',
    `<LifecycleConfiguration><Rule><ID>reelgate</ID><Filter><Prefix>${Filter.Prefix}</Prefix></Filter><Status>Enabled</Status>
     <AbortIncompleteMultipartUpload><DaysAfterInitiation>${uploads.DaysAfterInitiation}</DaysAfterInitiation></AbortIncompleteMultipartUpload>
     <NoncurrentVersionExpiration><NoncurrentDays>${versions.NoncurrentDays}</NoncurrentDays></NoncurrentVersionExpiration>
     </Rule></LifecycleConfiguration>`,
  )
  expect(await doctor()).toMatchObject({ state: 'ok' })
})

test('F-231: a rule of the bucket that would remove videos by their age is trouble, one for another prefix is none', async () => {
  const { bucket, doctor } = await newBucketWithRules()
  const rule = (prefix: string) =>
    `<LifecycleConfiguration><Rule><ID>old files</ID><Filter><Prefix>${prefix}</Prefix></Filter><Status>Enabled</Status>
     <Expiration><Days>30</Days></Expiration></Rule></LifecycleConfiguration>`
  await setRules(bucket, 'lifecycle', rule(''))
  expect(await doctor()).toMatchObject({ state: 'trouble', says: expect.stringContaining('lifecycle rule old files') })
  await setRules(bucket, 'lifecycle', rule('elsewhere/'))
  expect(await doctor()).toMatchObject({ state: 'warning' })
})

test('F-231: what unfinished uploads have is counted, and a bucket that does not show its rules is no trouble', async () => {
  const { bucket, doctor, proxy } = await newBucketWithRules()
  const key = `${bucket.address.prefix}sources/video`
  const uploadId = await beginUpload(bucket, key, 'an attempt')
  await sendPart(bucket, { key, uploadId, number: 1 }, Buffer.alloc(2_000_000))
  proxy.fault = async ({ path, pass, reply }) => {
    if (!path.includes('uploads=')) return false
    const answer = await pass()
    const older = answer.body.toString().replace(/<Initiated>[^<]*/, '<Initiated>2026-01-01T00:00:00.000Z')
    reply.writeHead(200, { 'content-type': 'application/xml' }).end(older)
    return true
  }
  expect((await doctor()).says).toContain('So far: 1 uploads older than a day, 2.0 MB.')
  proxy.fault = ({ path, reply }) => {
    if (!/versioning|lifecycle/.test(path)) return false
    reply.writeHead(403).end('<Error><Code>AccessDenied</Code></Error>')
    return true
  }
  expect(await doctor()).toMatchObject({ state: 'ok', says: expect.stringContaining('does not show its rules') })
})

/** A bucket of this test alone: rules are for all of it. */
async function newBucketWithRules() {
  const proxy = await startFaultProxy(await storeEndpoint())
  const { bucket: shared } = await bucketEnvironment()
  const name = `rules-${shared.address.prefix.slice(0, -1)}`
  const bucket = openBucket({ ...shared.address, bucket: name })
  await bucket.send({ method: 'PUT' })
  return { bucket, proxy, doctor: () => examineBucketRules(openBucket({ ...bucket.address, endpoint: proxy.endpoint })) }
}

async function setRules(bucket: Bucket, about: string, xml: string): Promise<void> {
  const body = Buffer.from(xml)
  const headers = { 'content-md5': createHash('md5').update(body).digest('base64') }
  await bucket.send({ method: 'PUT', query: { [about]: '' }, headers, body })
}
