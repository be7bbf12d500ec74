import { Type } from 'typebox'

const Given = Type.String({ description: 'goes from the upload credentials into the form as it is' })

/** What upload credentials give and the form of an upload carries (wire-contract.md, section 4). */
export const POLICY_FIELDS = {
  policy: Given,
  key: Given,
  'x-amz-signature': Given,
  'x-amz-algorithm': Given,
  'x-amz-date': Given,
  'x-amz-credential': Given,
}
