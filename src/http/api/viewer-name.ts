import { Type } from 'typebox'

const TextOrNull = Type.Union([Type.String(), Type.Null()])

/** What the owner calls a viewer. */
export const ViewerNameBody = Type.Union([Type.Object({ name: TextOrNull, email: TextOrNull }), Type.Null()], {
  description: 'the name and the e-mail address that OTPs of this userId brought as `viewer`; null: none did',
})
