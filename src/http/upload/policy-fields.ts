import { Type } from 'typebox'

const Given = Type.String({ description: 'from the upload credentials, unchanged' })

/** The fields that upload credentials contain and an upload form must have (wire-contract.md, section 4). */
export const POLICY_FIELDS = {
  policy: Given,
  key: Given,
  'x-amz-signature': Given,
  'x-amz-algorithm': Given,
  'x-amz-date': Given,
  'x-amz-credential': Given,
}
